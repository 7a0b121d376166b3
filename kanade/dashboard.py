"""The front page: what the overview means for somebody who has five seconds."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from fleet.flow.overview import Overview, overview
from fleet.flow.tallies import standings_of
from fleet.rules.charts import Count, Part
from fleet.rules.presence import Presence
from scheduler.public import queue_health
from scheduler.rules.health import LATE, QueueHealth, Verdict
from scheduler.rules.spans import relative, span_words

# What a person must hold to see the figures at all.
NEEDED = "fleet.view_schedule"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that needs a look, with the page to look at."""

    text: str
    url: str
    is_grave: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """One number about the queue, and the list behind it."""

    word: str
    value: str
    query: str = ""
    tone: str = ""


def dashboard(request: HttpRequest) -> dict[str, Any]:
    """What the front page shows to this person; nothing but the frame without the right."""
    if not request.user.has_perm(NEEDED):
        return {"overview": None}
    now = timezone.now()
    seen = overview(now)
    queue = queue_health(now)
    problems = list(problems_of(seen, queue))
    standings = standings_of(seen.executions)
    return {
        "now": now,
        "overview": seen,
        "problems": problems,
        "verdict": verdict(problems),
        "queue": queue,
        "figures": list(figures_of(queue)),
        "pcs": pc_parts(seen),
        "all_pcs": sum(seen.pcs.values()),
        "hours": [
            Count(f"{timezone.localtime(hour.starts_at):%H:%M}", hour.ended.ok, hour.ended.bad)
            for hour in seen.hours
        ],
        "executions": [(row, standings[row.pk]) for row in seen.executions],
    }


def verdict(problems: list[Problem]) -> str:
    """The tone of the whole page: ok, warn or bad."""
    if any(problem.is_grave for problem in problems):
        return "bad"
    return "warn" if problems else "ok"


def problems_of(seen: Overview, queue: QueueHealth) -> Iterator[Problem]:
    """Everything that needs a look, the gravest first."""
    yield from _halted(seen, queue)
    yield from _waiting_for_people(seen)


def _halted(seen: Overview, queue: QueueHealth) -> Iterator[Problem]:
    if seen.freeze.unreadable is not None:
        yield Problem("the freeze cannot be read", _list("freeze"), is_grave=True)
    elif seen.freeze.frozen:
        yield Problem("the fleet is frozen", _list("freeze"))
    if seen.schedules and not seen.is_ticking:
        when = relative(seen.last_tick_at, now=seen.now) if seen.last_tick_at else "never"
        yield Problem(f"no runner ticks (last: {when})", _list("schedule"), is_grave=True)
    if queue.verdict is not Verdict.OK:
        is_down = queue.verdict is Verdict.DOWN
        yield Problem(f"the queue is {queue.verdict}", "#d-queue", is_grave=is_down)


def _waiting_for_people(seen: Overview) -> Iterator[Problem]:
    if seen.troubles:
        yield Problem(
            _many(len(seen.troubles), "schedule needs", "schedules need") + " a look",
            _list("schedule"),
        )
    if seen.awaiting_approval:
        count = _many(seen.awaiting_approval, "run awaits", "runs await")
        yield Problem(f"{count} approval", f"{_list('execution')}?state__exact=awaiting_approval")
    for state, word in (("pending", "to be accepted"), ("quarantined", "in quarantine")):
        if seen.pcs.get(state):
            count = _many(seen.pcs[state], "PC", "PCs")
            yield Problem(f"{count} {word}", f"{_list('agent')}?state__exact={state}")


def figures_of(queue: QueueHealth) -> Iterator[Figure]:
    """The numbers about the queue, each with the list behind it."""

    def of(word: str, value: int, state: str, tone: str = "", name: str = "") -> Figure:
        more = "+" if (name or state) in queue.capped else ""
        return Figure(word, f"{value}{more}", f"?state={state}", tone if value else "")

    yield of("waiting", queue.waiting, "waiting")
    yield of("due", queue.due, "due")
    yield of("running", queue.running, "running", "run")
    age = queue.oldest_due_age_s
    late = age is not None and age > LATE.total_seconds()
    oldest = span_words(timedelta(seconds=age)) if age is not None else "none"
    yield Figure("oldest due", oldest, "?state=due", "bad" if late else "")
    yield of("expired leases", len(queue.expired_leases), "running", "bad")
    yield of("quarantined", queue.quarantined, "quarantined", "bad")
    yield of("failed, 24 h", queue.failed_runs_24h, "failed", "bad", "failed_runs_24h")


def pc_parts(seen: Overview) -> list[Part]:
    """The PCs by presence, then those that take no work."""
    tones = {
        Presence.ONLINE.value: "ok",
        Presence.STALE.value: "warn",
        Presence.OFFLINE.value: "idle",
        "pending": "warn",
        "quarantined": "bad",
        "revoked": "idle",
    }
    return [Part(word, seen.pcs[word], tone) for word, tone in tones.items() if word in seen.pcs]


def _many(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"


def _list(model: str) -> str:
    return reverse(f"admin:fleet_{model}_changelist")
