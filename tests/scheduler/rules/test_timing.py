"""When a task is due."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.rules.cron import parse
from scheduler.rules.timing import Place, Recurrence, UnusableCronError, place
from scheduler.rules.zones import zone

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)


@pytest.mark.parametrize(
    ("wanted", "waits_for", "held", "spot"),
    [
        (None, 0, False, Place(NOW, None, ready=True)),
        (NOW, 0, False, Place(NOW, NOW, ready=True)),
        (LATER, 0, False, Place(LATER, LATER, ready=False)),
        (None, 0, True, Place(NOW, None, ready=False)),
        (None, 2, False, Place(None, None, ready=False)),
        (LATER, 1, False, Place(None, LATER, ready=False)),
    ],
)
def test_due_is_when_the_time_has_come_and_nothing_is_waited_for(
    wanted: datetime | None, waits_for: int, held: bool, spot: Place
) -> None:
    assert place(wanted, waits_for=waits_for, held=held, now=NOW) == spot


@pytest.mark.parametrize(
    "bad",
    [
        Recurrence("61 * * * *"),
        Recurrence("* * * * *", tz="Mars/Olympus"),
        Recurrence("* * * * *", day_rule="xor"),
        Recurrence(""),
    ],
)
def test_what_cannot_be_read_is_one_kind_of_error(bad: Recurrence) -> None:
    assert bad.usable is False
    with pytest.raises(UnusableCronError):
        bad.next_after(NOW)


@given(
    at=st.integers(0, 8_000 * 24 * 3600 * 1000).map(lambda ms: NOW + timedelta(milliseconds=ms)),
    cron=st.sampled_from(["* * * * *", "*/7 * * * *", "30 2 * * *", "0 0 29 2 *"]),
    tz=st.sampled_from(["UTC", "Europe/Budapest", "Asia/Kathmandu", "Australia/Lord_Howe"]),
)
def test_asking_by_the_minute_is_asking_by_the_instant(at: datetime, cron: str, tz: str) -> None:
    assert Recurrence(cron, tz).next_after(at) == parse(cron).next_after(at, zone(tz))
