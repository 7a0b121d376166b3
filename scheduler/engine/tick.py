"""One whole pass in this thread: reap, claim, execute, finish. For tests and small programs."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from scheduler.engine import claim, hooks, reap
from scheduler.engine.execute import call_hook, execute
from scheduler.engine.finish import finish
from scheduler.engine.sift import sift
from scheduler.models import Runner
from scheduler.registry import REGISTRY


@dataclass(frozen=True, slots=True)
class Report:
    """What one pass did."""

    promoted: int
    ran: int
    hooks: int


def tick(runner: Runner, clock: Callable[[], datetime], *, limit: int = claim.BATCH) -> Report:
    """Run at most `limit` due bodies one after the other; return what was done."""
    now = clock()
    reap.Reaper(runner.pk).sweep(now=now)
    promoted = claim.promote(now=now)
    calls = hooks.take_orphans(runner.pk)
    ran = 0
    while ran < limit:
        wish = claim.Wish(runner_id=runner.pk, limit=1, kinds=list(REGISTRY.kinds))
        claims = claim.claim_suspect(wish, now=clock()) or claim.claim(wish, now=clock())
        if not claims:
            break
        for kept in sift(claims, now=clock()):
            ending = execute(kept, clock)
            calls += finish([ending], runner_name=runner.name, now=clock()).hooks
            ran += 1
    for call in calls:
        call_hook(lambda call=call: hooks.prepare(call))  # type: ignore[misc]  # bound per turn
        hooks.settled(call, now=clock())
    return Report(promoted, ran, len(calls))
