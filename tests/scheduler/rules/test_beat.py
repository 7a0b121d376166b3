"""What a row of django-celery-beat becomes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery import schedules

from scheduler.rules.beat import (
    TICK,
    BeatRow,
    Clocked,
    Crontab,
    Interval,
    Trigger,
    Unknown,
    Verdict,
    cron_text,
    next_of,
    plan,
)

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def crontab(text: str = "0 4 * * *", tz: str = "UTC") -> Crontab:
    """A crontab as celery reads it."""
    minute, hour, day, month, weekday = text.split()
    read = schedules.crontab(minute, hour, weekday, day, month)
    numbers = (read.minute, read.hour, read.day_of_month, read.month_of_year, read.day_of_week)
    return Crontab((minute, hour, day, month, weekday), tuple(map(frozenset, numbers)), tz)


def row(trigger: Trigger | None = None, **fields: Any) -> BeatRow:
    """An enabled row."""
    return BeatRow("nightly", "app.tasks.nightly", trigger or crontab(), **fields)


@pytest.mark.parametrize(
    ("typed", "ours"),
    [
        ("* * * * *", "* * * * *"),
        ("*/15 * * * *", "*/15 * * * *"),
        ("5-59/15 3 * * *", "5-59/15 3 * * *"),
        ("0 22-2 * * *", "0 0,1,2,22,23 * * *"),
        ("0 4 */3 */2 *", "0 4 */3 */2 *"),
        ("0 4 * * mon-fri", "0 4 * * mon-fri"),
        ("0 4 * * fri-mon", "0 4 * * 0,1,5,6"),
        ("0 4 * * sunday", "0 4 * * 0"),
        ("0 4 * * */2", "0 4 * * */2"),
        ("0 4 * * sun-sat", "0 4 * * sun-sat"),
        ("0 4 * * mon-sun", "0 4 * * mon-sun"),
        ("0 4 * * tue-mon", "0 4 * * *"),
        ("0 4 * january *", "0 4 * 1 *"),
        ("0 4 1-31 * *", "0 4 1-31 * *"),
        ("0,30 4 1,15 * 1", "0,30 4 1,15 * 1"),
    ],
    ids=str,
)
def test_a_crontab_means_the_same_in_our_words(typed: str, ours: str) -> None:
    assert cron_text(crontab(typed)) == ours


def test_both_day_fields_must_match_as_in_celery() -> None:
    step = plan(row(crontab("0 4 13 * 5", "Europe/Budapest")), now=NOW)

    assert step.ask is not None
    assert (step.ask.cron, step.ask.tz, step.ask.at) == ("0 4 13 * 5", "Europe/Budapest", None)
    # Friday the 13th of March, not the next Friday and not the next 13th.
    assert "first at 2026-03-13T03:00:00+00:00" in step.words


@pytest.mark.parametrize(
    ("fields", "at"),
    [
        pytest.param({}, NOW + HOUR / 2, id="from its last change"),
        pytest.param({"last_run_at": NOW - HOUR / 4}, NOW + 3 * HOUR / 4, id="from its last run"),
        pytest.param(
            {"last_run_at": NOW - 5 * HOUR / 2}, NOW + HOUR / 2, id="missed ones are beat's"
        ),
        pytest.param({"last_run_at": NOW - HOUR}, NOW + HOUR, id="due now is beat's"),
        pytest.param({"start_time": NOW + 7 * HOUR}, NOW + 7 * HOUR, id="not before its start"),
        pytest.param({"start_time": NOW - HOUR / 4}, NOW + 3 * HOUR / 4, id="from its past start"),
    ],
)
def test_an_interval_keeps_its_anchor(fields: dict[str, Any], at: datetime) -> None:
    step = plan(row(Interval(HOUR), date_changed=NOW - HOUR / 2, **fields), now=NOW)

    assert step.ask is not None
    assert (step.ask.at, step.ask.cron) == (at, None)
    assert step.ask.input["every"] == 3600
    assert step.ask.input["anchor"] == at.isoformat()


def test_the_message_carries_all_that_beat_would_send() -> None:
    step = plan(
        row(
            args='["a", 1]',
            kwargs='{"b": null}',
            headers='{"x": "y"}',
            routing={"queue": "mail", "priority": 9},
            expire_seconds=60,
        ),
        now=NOW,
    )

    assert step.ask is not None
    assert step.ask.key == "nightly"
    assert step.ask.input == {
        "task": "app.tasks.nightly",
        "args": ["a", 1],
        "kwargs": {"b": None},
        "options": {
            "queue": "mail",
            "priority": 9,
            "expires": 60,
            "headers": {"x": "y", "periodic_task_name": "nightly"},
        },
    }


def test_an_expiry_goes_along() -> None:
    step = plan(row(expires=NOW + HOUR), now=NOW)

    assert step.ask is not None
    assert step.ask.input["until"] == (NOW + HOUR).isoformat()


def test_a_recurrence_waits_for_its_start() -> None:
    # A start on an occurrence is that occurrence.
    start = datetime(2026, 4, 1, 4, 0, tzinfo=UTC)

    step = plan(row(start_time=start), now=NOW)

    assert step.ask is not None
    assert (step.ask.at, step.ask.cron) == (start, "0 4 * * *")


@pytest.mark.parametrize(
    ("trigger", "at"),
    [
        pytest.param(crontab(), datetime(2026, 3, 3, 4, 0, tzinfo=UTC), id="crontab"),
        pytest.param(Interval(HOUR), NOW + HOUR, id="interval"),
        pytest.param(Clocked(NOW + 2 * HOUR), NOW + 2 * HOUR, id="clocked"),
    ],
)
def test_a_one_off_runs_once(trigger: Trigger, at: datetime) -> None:
    step = plan(row(trigger, one_off=True, date_changed=NOW), now=NOW)

    assert step.ask is not None
    assert (step.ask.at, step.ask.cron) == (at, None)
    assert "every" not in step.ask.input


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param(row(enabled=False), "is disabled", id="disabled"),
        pytest.param(row(one_off=True, total_run_count=1), "and has", id="one-off that ran"),
        pytest.param(row(expires=NOW), "expired at 2026-03-02", id="expired"),
        pytest.param(BeatRow("t", TICK, Interval(HOUR)), "drives Kanade's ticks", id="our tick"),
    ],
)
def test_what_has_nothing_to_do_is_left_alone(given: BeatRow, words: str) -> None:
    step = plan(given, now=NOW)

    assert (step.verdict, step.ask) == (Verdict.LEAVE, None)
    assert words in step.words


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param(row(Unknown("it follows the sun")), "the sun", id="solar"),
        pytest.param(row(Clocked(NOW)), "is past", id="clocked in the past"),
        pytest.param(row(Interval(HOUR / 7200000)), "whole number", id="microseconds"),
        pytest.param(row(Interval(timedelta(0))), "whole number", id="no time at all"),
        pytest.param(row(crontab(tz="Mars/Base")), "Mars/Base", id="an unknown zone"),
        pytest.param(row(args="[1,"), "args are no JSON", id="broken arguments"),
        pytest.param(row(args="{}"), "args are a list in JSON", id="arguments of a bad shape"),
        pytest.param(row(kwargs="[]"), "kwargs are an object", id="keywords of a bad shape"),
        pytest.param(row(headers="x"), "headers are no JSON", id="broken headers"),
        pytest.param(row(args='["\\u0000"]'), "NUL", id="arguments that no database holds"),
        pytest.param(BeatRow("a\0", "t", crontab()), "NUL", id="a name that no column holds"),
    ],
)
def test_what_cannot_be_carried_over_says_why(given: BeatRow, words: str) -> None:
    step = plan(given, now=NOW)

    assert (step.verdict, step.ask) == (Verdict.CANNOT, None)
    assert words in step.words


@pytest.mark.parametrize(
    ("now", "then"),
    [(0, 60), (59, 60), (60, 120), (-1, 0), (-61, -60)],
    ids=["on it", "before the first", "on the first", "before it", "long before it"],
)
def test_the_next_of_an_interval_is_on_its_grid_and_later(now: int, then: int) -> None:
    found = next_of(NOW, timedelta(seconds=60), NOW + timedelta(seconds=now))

    assert found == NOW + timedelta(seconds=then)
