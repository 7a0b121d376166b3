"""A recurrence explained: words, next fires, how often a day."""

from datetime import UTC, datetime

from scheduler.rules.forecasts import forecast
from scheduler.rules.timing import Recurrence
from tests.clock import START


def test_the_next_five_fires_are_told_in_utc_with_the_zone_beside() -> None:
    seen = forecast(Recurrence("30 2 * * *", "Europe/Budapest"), now=START)
    assert seen.fires == tuple(datetime(2026, 3, day, 1, 30, tzinfo=UTC) for day in range(3, 8))
    assert (str(seen.zone), seen.per_day, seen.problem) == ("Europe/Budapest", 1, "")
    assert "02:30" in seen.words


def test_one_that_cannot_be_read_says_why_and_nothing_else() -> None:
    seen = forecast(Recurrence("61 * * * *"), now=START)
    assert (seen.fires, seen.words) == ((), "")
    assert "minute" in seen.problem


def test_an_unknown_zone_is_a_problem() -> None:
    assert "Mars" in forecast(Recurrence("* * * * *", "Mars/Olympus"), now=START).problem


def test_one_that_never_fires_has_no_fires() -> None:
    seen = forecast(Recurrence("0 0 31 2 *"), now=START)
    assert (seen.fires, seen.per_day, seen.problem) == ((), 0, "")
