"""The builder: later calls override earlier ones, bad arguments raise."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler.rules.builder import BuilderError, TaskBuilder
from scheduler.rules.fire import Retry

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class Asked:
    """What was requested."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.options: dict[str, Any] = {}

    def __call__(self, kind: str, **options: Any) -> int:
        """Note it."""
        self.options = {"kind": kind, **options}
        return 7


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def builder(asked: Asked) -> TaskBuilder:
    return TaskBuilder(asked, "demo", {"a": 1})


def test_all_options_reach_the_request(asked: Asked, builder: TaskBuilder) -> None:
    builder.key("k").with_retry(Retry(1, 2, 3)).tz("Europe/Budapest").priority(4).queue("q")
    builder.depends_on(1).depends_on(2).run_on_startup().cron("0 9 * * *")

    assert builder.schedule() == 7
    assert asked.options == {
        "kind": "demo",
        "input": {"a": 1},
        "key": "k",
        "retry": Retry(1, 2, 3),
        "tz": "Europe/Budapest",
        "priority": 4,
        "queue": "q",
        "depends_on": [1, 2],
        "run_on_startup": True,
        "cron": "0 9 * * *",
        "at": None,
        "after": None,
    }


def test_a_cron_after_a_time_forgets_the_time(asked: Asked, builder: TaskBuilder) -> None:
    builder.schedule_at(AT).cron("0 9 * * *").schedule()

    assert asked.options["at"] is None


def test_a_time_after_a_cron_is_the_first_run(asked: Asked, builder: TaskBuilder) -> None:
    builder.cron("0 9 * * *").at(AT)

    assert (asked.options["cron"], asked.options["at"]) == ("0 9 * * *", AT)


def test_a_list_of_dependencies_replaces_earlier_ones(asked: Asked, builder: TaskBuilder) -> None:
    builder.depends_on(1).depend_on([2, 3]).after_task(4)

    assert asked.options["depends_on"] == [2, 3, 4]


def test_now_does_not_forget_the_delay(asked: Asked, builder: TaskBuilder) -> None:
    builder.schedule_after(timedelta(seconds=100)).now()

    assert asked.options["after"] == timedelta(seconds=100)


def test_the_automatic_policy_is_the_default_one(asked: Asked, builder: TaskBuilder) -> None:
    builder.with_automatic_retry()

    assert asked.options["retry"] == Retry(10, 60, 3600)


def test_weekday_hour_and_minute_become_a_cron(asked: Asked, builder: TaskBuilder) -> None:
    builder.weekly_at(6, 23, 59).schedule()

    assert asked.options["cron"] == "59 23 * * 6"


@pytest.mark.parametrize(("hour", "minute"), [(24, 0), (-1, 0), (0, 60), (True, 0), (0.5, 0)])
def test_a_time_that_is_none_is_refused(
    asked: Asked, builder: TaskBuilder, hour: Any, minute: Any
) -> None:
    with pytest.raises(BuilderError, match="whole number"):
        builder.daily_at(hour, minute)

    assert asked.options == {}


def test_there_is_no_seventh_weekday(builder: TaskBuilder) -> None:
    with pytest.raises(BuilderError, match="0 to 6"):
        builder.weekly_at(7, 9, 0)


def test_nothing_can_be_said_after_the_request(builder: TaskBuilder) -> None:  # T16
    builder.now()

    for again in (builder.now, lambda: builder.key("k"), lambda: builder.depends_on(1)):
        with pytest.raises(BuilderError, match="requested already"):
            again()
