"""When a lease is abandoned, and what that means for its task."""

from datetime import timedelta

import pytest

from scheduler.rules.leases import (
    LEASE,
    MOST_HOLDING_BACK,
    Lease,
    Loss,
    Watch,
    after_loss,
    holds_back,
    may_still_start,
)

HELD = Lease(task_id=1, token=1, beat=1, runner_id=9)
NOW = timedelta(0)


def test_a_lease_is_abandoned_when_it_stood_still_for_its_whole_time() -> None:
    watch = Watch()

    assert watch.abandoned([HELD], at=5.0) == []
    assert watch.abandoned([HELD], at=5.0 + LEASE - 0.001) == []
    assert watch.abandoned([HELD], at=5.0 + LEASE) == [HELD]


@pytest.mark.parametrize(
    "changed",
    [Lease(1, 1, 2, 9), Lease(1, 2, 1, 9), Lease(1, 1, 1, 8)],
    ids=["beat", "token", "runner"],
)
def test_a_lease_that_moves_starts_anew(changed: Lease) -> None:
    watch = Watch()
    watch.abandoned([HELD], at=0.0)
    watch.abandoned([changed], at=LEASE)

    assert watch.abandoned([changed], at=LEASE + 1) == []


def test_a_lease_that_was_away_starts_anew() -> None:
    watch = Watch()
    watch.abandoned([HELD], at=0.0)
    watch.abandoned([], at=10.0)

    assert watch.abandoned([HELD], at=LEASE) == []


@pytest.mark.parametrize(
    ("facts", "loss"),
    [
        ((False, False, True, 0), Loss(suspect=False, crash_count=0, pause=NOW)),
        ((True, False, False, 0), Loss(suspect=True, crash_count=0, pause=NOW)),
        ((True, False, True, 0), Loss(suspect=True, crash_count=1, pause=NOW)),
        ((True, True, False, 1), Loss(True, 2, timedelta(seconds=30))),
        ((True, True, True, 2), Loss(suspect=True, crash_count=3, pause=None)),
        ((False, True, True, 2), Loss(suspect=True, crash_count=2, pause=NOW)),
    ],
    ids=["not begun", "in company", "the only one", "alone again", "third", "not begun again"],
)
def test_only_bodies_that_died_alone_are_counted(
    facts: tuple[bool, bool, bool, int], loss: Loss
) -> None:
    started, suspect, only_one, crash_count = facts

    assert loss == after_loss(
        started=started, suspect=suspect, only_one=only_one, crash_count=crash_count
    )


def test_a_holder_stops_before_others_may_start() -> None:
    assert may_still_start(100.0, at=124.9) is True
    assert may_still_start(100.0, at=125.0) is False


def test_a_busy_runner_holds_back_for_a_while() -> None:
    assert holds_back(None, at=0.0) is False
    assert holds_back(10.0, at=10.0 + MOST_HOLDING_BACK - 1) is True
    assert holds_back(10.0, at=10.0 + MOST_HOLDING_BACK) is False
