"""Whether a held command starts, waits or ends: every phase, every obstacle, in their order."""

from datetime import datetime, timedelta

import pytest

from fleet.agent.commands import Outcome
from fleet.agent.waiting import End, Start, Step, Wait, decide
from tests.fleet.agent.make import NOW, make_command

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
DEADLINE = NOW + HOUR


def step(
    now: datetime | None = NOW,
    *,
    not_before: datetime | None = None,
    forbidden: str | None = None,
    killed: bool = False,
) -> Step:
    return decide(
        make_command(), not_before=not_before, now=now, forbidden=forbidden, killed=killed
    )


def test_what_nothing_forbids_starts() -> None:
    assert step() == Start()


@pytest.mark.parametrize(
    ("late_s", "outcome"),
    [
        pytest.param(-1, None, id="23 deadline -1s"),
        pytest.param(0, None, id="23 deadline 0"),
        pytest.param(1, Outcome.EXPIRED, id="23 deadline +1s"),
        pytest.param(86_300, Outcome.EXPIRED, id="23 deadline +86300s"),
    ],
)
def test_the_deadline_is_asked_immediately_before_the_start(
    late_s: int, outcome: Outcome | None
) -> None:
    found = step(DEADLINE + late_s * SECOND, not_before=NOW)
    assert (found.outcome if isinstance(found, End) else None) is outcome


def test_jitter_waits_until_its_end_and_not_longer() -> None:
    start = NOW + 5 * SECOND
    assert step(not_before=start) == Wait("its time has not come", start)
    assert step(start, not_before=start) == Start()


def test_a_jitter_beyond_the_deadline_expires() -> None:
    found = step(DEADLINE + SECOND, not_before=DEADLINE + HOUR)
    assert isinstance(found, End)
    assert found.outcome is Outcome.EXPIRED


def test_what_is_forbidden_waits_for_an_event() -> None:
    assert step(forbidden="frozen: audit") == Wait("frozen: audit", None)


def test_a_frozen_command_expires_at_its_deadline() -> None:
    found = step(DEADLINE + SECOND, forbidden="frozen")
    assert isinstance(found, End)
    assert found.outcome is Outcome.EXPIRED


def test_without_the_time_nothing_starts_and_nothing_expires() -> None:
    assert step(None) == Wait("the server's time is not known", None)


@pytest.mark.parametrize("phase", ["jitter", "queue", "frozen", "time unknown", "too late"])
def test_a_kill_counts_in_every_phase(phase: str) -> None:
    killed = End(Outcome.KILLED, "killed on request before it started")
    found = {
        "jitter": lambda: step(not_before=NOW + HOUR, killed=True),
        "queue": lambda: step(killed=True),
        "frozen": lambda: step(forbidden="frozen", killed=True),
        "time unknown": lambda: step(None, killed=True),
        "too late": lambda: step(DEADLINE + HOUR, killed=True),
    }[phase]()
    assert found == killed
