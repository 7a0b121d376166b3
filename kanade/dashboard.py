"""The front page: what the overview means for somebody who has five seconds."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from fleet.flow.overview import Overview, overview
from fleet.flow.tallies import standings_of
from fleet.rules.charts import Count, Part
from fleet.rules.presence import Presence
from scheduler.rules.spans import relative

# What a person must hold to see the figures at all.
NEEDED = "fleet.view_schedule"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that needs a look, with the page to look at."""

    text: str
    url: str
    is_grave: bool = False


def dashboard(request: HttpRequest) -> dict[str, Any]:
    """What the front page shows to this person; nothing but the frame without the right."""
    if not request.user.has_perm(NEEDED):
        return {"overview": None}
    now = timezone.now()
    seen = overview(now)
    problems = list(problems_of(seen))
    standings = standings_of(seen.executions)
    return {
        "now": now,
        "overview": seen,
        "problems": problems,
        "verdict": verdict(problems),
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


def problems_of(seen: Overview) -> Iterator[Problem]:
    """Everything that needs a look, the gravest first."""
    if seen.freeze.unreadable is not None:
        yield Problem("the freeze cannot be read", _list("freeze"), is_grave=True)
    elif seen.freeze.frozen:
        yield Problem("the fleet is frozen", _list("freeze"))
    if seen.schedules and not seen.is_ticking:
        when = relative(seen.last_tick_at, now=seen.now) if seen.last_tick_at else "never"
        yield Problem(f"no runner ticks (last: {when})", _list("schedule"), is_grave=True)
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
