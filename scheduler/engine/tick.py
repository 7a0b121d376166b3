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
from scheduler.rules.claims import Claim


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
        claims = _claim(runner, now=clock())
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


def _claim(runner: Runner, *, now: datetime) -> list[Claim]:
    """Claim one task: a suspect first, then of limited queues, then of the others."""
    wish = claim.Wish(runner_id=runner.pk, limit=1, kinds=list(REGISTRY.kinds))
    found = claim.claim_suspect(wish, now=now)
    for queue in [] if found else claim.limited_queues():
        found = found or claim.claim_limited(wish, queue, now=now)
    return found or claim.claim(wish, now=now)
