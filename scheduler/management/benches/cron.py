"""Recurring tasks: 10,000 due at one moment, what an idle look costs, and the next fire itself."""

import statistics
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from croniter import croniter
from django.utils import timezone

from scheduler.management.benches import running
from scheduler.management.benches.measuring import (
    ROUNDS,
    Report,
    Write,
    in_turn,
    scratch_database,
    seconds,
    tidy,
)
from scheduler.models import Run, Task
from scheduler.rules import cron

RECURRING = 10_000
# Seconds in which all of them have been fired.
MOST_SECONDS = 1.0
FEW, MANY = 100, 100_000
LOOKS = 50
STEPS = 300
EXPRESSIONS = ("*/5 * * * *", "0 4 * * *", "30 2 * * mon-fri", "15 9 1,15 * *", "0 0 29 2 *")
ZONE = ZoneInfo("Europe/Budapest")


def run(*, write: Write, rounds: int = ROUNDS, many: int = MANY, **_options: object) -> bool:
    """Measure; return whether the goals are met."""
    report = Report("cron", write)
    with scratch_database(), running.only_kind(running.NOOP, running.nothing):
        _fires(report, rounds=rounds)
        _looks(report, rounds=rounds, many=many)
        _next_fires(report, rounds=rounds)
    return report.is_ok


def _fires(report: Report, *, rounds: int) -> None:
    took = statistics.median(_fire_all() for _ in range(rounds))
    report.at_most(
        f"{RECURRING} fires",
        took / MOST_SECONDS,
        1.0,
        kanade_s=took,
        fires_per_s=RECURRING / took,
        rounds=rounds,
    )


def _fire_all() -> float:
    # Due in this minute, so that none is late, and next on another day.
    now = timezone.now()
    daily = f"{now.minute} {now.hour} * * *"
    running.fill_recurring(RECURRING, due_at=running.last_fire(daily, now), cron=daily)
    tidy()
    took = running.drain()
    assert Run.objects.count() == RECURRING
    assert not Task.objects.filter(due_at__lte=timezone.now()).exists()
    return took


def _looks(report: Report, *, rounds: int, many: int) -> None:
    few, lots = in_turn(partial(_look, FEW), partial(_look, many), rounds=rounds)
    report.at_most(
        f"idle look, {many} tasks beside {FEW}",
        lots / few,
        2.0,
        few_ms=few * 1000,
        many_ms=lots * 1000,
        rounds=rounds,
    )


def _look(count: int) -> float:
    """Return the median seconds of a pass of the runner that finds nothing due."""
    running.fill_recurring(count, due_at=timezone.now() + timedelta(hours=6))
    tidy()
    loop = running.make_loop()
    loop.step()
    took = statistics.median(seconds(loop.step) for _ in range(LOOKS))
    loop.stop()
    loop.run()
    return took


def _next_fires(report: Report, *, rounds: int) -> None:
    """Compare with the library called directly, which gets some hours of DST days wrong."""
    for expression in EXPRESSIONS:
        ours, theirs = in_turn(
            partial(seconds, partial(_ours, expression)),
            partial(seconds, partial(_directly, expression)),
            rounds=rounds,
        )
        report.at_most(
            f"next fire of {expression}",
            ours / theirs,
            1.0,
            kanade_us=ours / STEPS * 1e6,
            croniter_us=theirs / STEPS * 1e6,
            rounds=rounds,
        )


def _ours(expression: str) -> None:
    def following(at: datetime) -> datetime:
        found = cron.parse(expression).next_after(at, ZONE)
        assert found is not None
        return found

    _walk(following)


def _directly(expression: str) -> None:
    _walk(lambda at: croniter(expression, at.astimezone(ZONE)).get_next(datetime))


def _walk(following: Callable[[datetime], datetime]) -> None:
    """Take step after step, each from where the last one led, at most four centuries on."""
    at = start = datetime(2026, 1, 1, tzinfo=UTC)
    for _ in range(STEPS):
        at = following(at)
        if at.year > start.year + 400:
            at = start
