"""Until when a run by hand may start."""

from datetime import UTC, datetime, timedelta

import pytest

from fleet.rules.run_deadline import DeadlineError, parse_run_deadline

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("1s", timedelta(seconds=1)),
        ("4h", timedelta(hours=4)),
        ("7d", timedelta(days=7)),
        ("2026-12-01T14:00:00+01:00", timedelta(hours=1)),
        ("2026-12-08T12:00:00Z", timedelta(days=7)),
        ("2026-12-02", timedelta(hours=12)),
    ],
)
def test_a_deadline_is_a_duration_or_an_instant(text: str, after: timedelta) -> None:
    assert parse_run_deadline(text, now=NOW) == NOW + after


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "0s",
        "-5m",
        "7d 1s",
        "2026-12-01T12:00:00Z",
        "2026-11-30",
        "2026-12-09",
        "5",
        "100000000y",
        "2026-12-01T14:00",
    ],
)
def test_another_deadline_is_refused(text: str) -> None:
    with pytest.raises(DeadlineError):
        parse_run_deadline(text, now=NOW)
