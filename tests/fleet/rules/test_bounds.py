"""From and until: what the texts mean in a zone."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from fleet.rules.bounds import BoundError, Bounds, parse_bound, read_active, zone_named
from scheduler.rules.zones import ZoneError

TOKYO = ZoneInfo("Asia/Tokyo")
ZONES = {
    "utc": ZoneInfo("UTC"),
    "Tokyo": TOKYO,
    "Havana": ZoneInfo("America/Havana"),
    "Santiago": ZoneInfo("America/Santiago"),
    "Sao Paulo": ZoneInfo("America/Sao_Paulo"),
    "Cairo": ZoneInfo("Africa/Cairo"),
    "Apia": ZoneInfo("Pacific/Apia"),
}


@pytest.mark.parametrize(
    ("text", "zone", "instant"),
    [
        pytest.param("2026-07-01", "utc", "2026-07-01T00:00", id="3.2#1"),
        pytest.param("2026-07-01", "Tokyo", "2026-06-30T15:00", id="3.2#2"),
        pytest.param("2026-07-01T09:00:00+09:00", "Cairo", "2026-07-01T00:00", id="3.2#3"),
        pytest.param("2026-11-01", "Havana", "2026-11-01T04:00", id="3.2#4 fold"),
        pytest.param("2026-09-06", "Santiago", "2026-09-06T04:00", id="3.2#5 gap, ours"),
        pytest.param("2018-11-04", "Sao Paulo", "2018-11-04T03:00", id="midnight missing"),
        pytest.param("2018-02-17", "Sao Paulo", "2018-02-17T02:00", id="25 hours"),
        pytest.param("2026-04-24", "Cairo", "2026-04-23T22:00", id="Cairo's gap"),
        pytest.param("2011-12-30", "Apia", "2011-12-30T10:00", id="the day that was not"),
        pytest.param("2026-07-01t09:00:00.5z", "utc", "2026-07-01T09:00:00.5", id="lower case"),
        pytest.param(
            "2026-07-01T09:00:00.123456789Z", "utc", "2026-07-01T09:00:00.123456", id="ns"
        ),
        pytest.param("2016-12-31T23:59:60Z", "utc", "2016-12-31T23:59:59", id="leap second"),
        pytest.param("2199-12-31", "utc", "2199-12-31T00:00", id="latest"),
    ],
)
def test_a_bound_is_an_instant(text: str, zone: str, instant: str) -> None:
    assert parse_bound(text, ZONES[zone]) == datetime.fromisoformat(instant).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("2026/07/01", id="3.2#6 slashes"),
        pytest.param("July 1", id="3.2#6 words"),
        pytest.param(" ", id="3.2#6 blank"),
        " 2026-07-01",
        "2026-07-01\n",
        "",
        "2026-07-01 09:00",
        "2026-07-01T09:00",
        "2026-07-01T09:00Z",
        "2026-07-01T09:00:00",
        "2026-07-01 09:00:00Z",
        "2026-02-30",
        "2026-13-01",
        "2026-W10-7",
        "20260701T090000Z",
        "2026-07-01T24:00:00Z",
        "2026-07-01T09:00:00+25:00",
        "1969-12-31",
        "2200-01-01",
        "9999-12-31T23:59:59-12:00",
        "0001-01-01T00:00:00+12:00",
        "\u0662026-07-01",
        "garbage",
    ],
)
def test_anything_else_is_refused_with_what_would_be_right(text: str) -> None:
    with pytest.raises(BoundError):
        parse_bound(text, ZONES["utc"])


def test_the_refusal_names_both_forms() -> None:
    with pytest.raises(BoundError) as caught:
        parse_bound("July 1", TOKYO)
    assert str(caught.value) == (
        '"July 1" is no date: write YYYY-MM-DD, or a date-time with its offset '
        "such as 2026-07-01T09:00:00+02:00"
    )


@pytest.mark.parametrize(
    ("name", "key"),
    [("local", "Asia/Tokyo"), ("utc", "UTC"), ("Europe/Budapest", "Europe/Budapest")],
)
def test_a_records_zone_is_local_utc_or_a_name(name: str, key: str) -> None:
    assert zone_named(name, TOKYO).key == key


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(ZoneError):
        zone_named("Budapest", TOKYO)


@pytest.mark.parametrize(
    ("starts", "ends", "zone", "problem"),
    [
        ("2026-07-01", "2026-07-02", "utc", False),
        ("2026-07-01", "2026-07-01", "utc", True),
        ("2026-07-02", "2026-07-01", None, True),
        ("2026-07-01", "2026-07-02", None, False),
        ("2026-07-01", "2026-06-30T15:00:01Z", "Tokyo", False),
        ("2026-07-01", "2026-06-30T15:00:00Z", "Tokyo", True),
        ("2026-07-01", "2026-06-30T15:00:00Z", None, False),
        ("2026-07-01", "2026-06-30T09:00:00Z", None, True),
        ("2026-07-01T13:00:00Z", "2026-07-01", None, True),
        ("2026-07-01T12:59:59Z", "2026-07-01", None, False),
        (None, "2026-07-01", "utc", False),
        ("2026-07-01", None, "utc", False),
        ("garbage", "2026-07-01", "utc", False),
    ],
)
def test_a_period_must_begin_before_it_ends(
    starts: str | None, ends: str | None, zone: str | None, problem: bool
) -> None:
    found = Bounds(starts, ends).order_problem(ZONES[zone] if zone else None)
    assert found == ("must be strictly before until" if problem else None)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


JULY = Bounds("2026-07-01", "2026-08-01")


@pytest.mark.parametrize(
    ("bounds", "zone", "now", "inside"),
    [
        pytest.param(JULY, "utc", "2026-06-30T23:00", False, id="9#1"),
        pytest.param(JULY, "utc", "2026-06-30T23:59:59.999", False, id="9#2"),
        pytest.param(JULY, "utc", "2026-07-01T00:00", True, id="9#3"),
        pytest.param(JULY, "utc", "2026-07-15T12:00", True, id="9#4"),
        pytest.param(JULY, "utc", "2026-07-31T23:59:59", True, id="9#5"),
        pytest.param(JULY, "utc", "2026-08-01T00:00", False, id="9#6"),
        pytest.param(JULY, "utc", "2026-08-02T00:00", False, id="9#7"),
        pytest.param(Bounds(), "utc", "2026-08-02T00:00", True, id="9#8 none"),
        pytest.param(
            Bounds("2026-07-01T09:00:00+09:00"), "Cairo", "2026-06-30T23:59", False, id="9#9"
        ),
        pytest.param(
            Bounds("2026-07-01T09:00:00+09:00"), "Cairo", "2026-07-01T00:00", True, id="9#10"
        ),
        pytest.param(Bounds("2026-07-01"), "Tokyo", "2026-06-30T14:59", False, id="9#11"),
        pytest.param(Bounds("2026-07-01"), "Tokyo", "2026-06-30T15:00", True, id="9#12"),
        pytest.param(Bounds("garbage"), "utc", "2026-06-30T15:00", False, id="9#13 ours closes"),
        pytest.param(
            Bounds("garbage", "2026-08-01"), "utc", "2026-07-15T00:00", False, id="9#14 ours"
        ),
    ],
)
def test_an_active_period_is_half_open_and_an_unreadable_bound_closes_it(
    bounds: Bounds, zone: str, now: str, inside: bool
) -> None:
    assert read_active(bounds, ZONES[zone]).covers(moment(now)) is inside
