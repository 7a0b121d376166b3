"""What may be asked: each bad argument is refused with what would be right."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler.rules.fire import Retry
from scheduler.rules.orders import make_order
from scheduler.rules.timing import Recurrence

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


def order(**options: Any) -> Any:
    return make_order("demo", now=NOW, **options)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"key": "x" * 501}, "500"),
        ({"key": 7}, "key"),
        ({"key": "a\0b"}, "NUL"),
        ({"queue": ""}, "queue"),
        ({"queue": "q" * 101}, "100"),
        ({"priority": -101}, "-100"),
        ({"priority": 1.5}, "priority"),
        ({"priority": True}, "priority"),
        ({"misfire": "never"}, "skip, once or all"),
        ({"at": NOW, "after": 5}, "not both"),
        ({"at": datetime(2026, 3, 2, 8)}, "aware"),  # noqa: DTZ001  # that is the point
        ({"at": "tomorrow"}, "aware"),
        ({"after": "5 minutes"}, "timedelta or seconds"),
        ({"after": float("nan")}, "timedelta or seconds"),
        ({"retry": (1, 2, 3)}, "Retry"),
        ({"depends_on": ["7"]}, "task id"),
        ({"cron": "* * * * *"}, "needs a key"),
        ({"run_on_startup": True}, "recurring"),
        ({"cron": "0 0 30 2 *", "key": "k"}, "30"),
        ({"cron": "* * * * *", "key": "k", "tz": "Nowhere"}, "Nowhere"),
        ({"input": object()}, "JSON"),
        ({"input": {"a": float("inf")}}, "JSON"),
        ({"input": ["\ud800"]}, "surrogate"),
        ({"input": "x" * 300_000}, "262144"),
    ],
)
def test_a_bad_argument_is_refused_by_name(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        order(**options)


def test_a_kind_has_a_name() -> None:
    with pytest.raises(ValueError, match="kind"):
        make_order("", now=NOW)


@pytest.mark.parametrize("after", [timedelta(seconds=90), 90, 90.0])
def test_a_delay_is_a_timedelta_or_seconds(after: timedelta | float) -> None:
    assert order(after=after).wanted.at == NOW + timedelta(seconds=90)


def test_a_negative_delay_is_the_past() -> None:
    assert order(after=-5).wanted.at == NOW - timedelta(seconds=5)


def test_an_order_says_what_was_asked() -> None:
    found = order(
        key="k", cron="0 9 * * *", tz="Europe/Budapest", retry=Retry(1, 2, 3), depends_on=[2, 1, 2]
    )

    assert found.wanted.recurrence == Recurrence("0 9 * * *", "Europe/Budapest", "or")
    assert (found.kind, found.key, found.depends_on) == ("demo", "k", (2, 1))


def test_the_input_is_what_the_body_will_read_back() -> None:
    assert order(input={1: (2, 3)}).wanted.input == {"1": [2, 3]}
