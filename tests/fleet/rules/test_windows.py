"""Windows, skip dates and active periods: case tables, days of a clock change, properties."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.rules.windows import (
    Active,
    Closed,
    Hours,
    Window,
    WindowError,
    parse_skip_date,
    parse_window,
    read_hours,
)

UTC_ZONE = ZoneInfo("UTC")
TOKYO = ZoneInfo("Asia/Tokyo")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        pytest.param("09:00-17:00", time(9), time(17), id="10.1#1 day"),
        pytest.param("22:00-05:00", time(22), time(5), id="10.1#1 night"),
        pytest.param("00:00-23:59", time(0), time(23, 59), id="10.1#1 whole day"),
        pytest.param("09:00 - 17:00", time(9), time(17), id="10.1#2"),
        pytest.param("  09:00-17:00\t", time(9), time(17), id="blanks around"),
    ],
)
def test_a_window_is_two_times_of_day(text: str, start: time, end: time) -> None:
    assert parse_window(text) == Window(start, end)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("9-5", "HH:MM from 00:00 to 23:59", id="10.1#3 9-5"),
        pytest.param("22:00", "HH:MM-HH:MM", id="10.1#3 no dash"),
        pytest.param("22:00-22:00", "never open", id="10.1#3 zero width"),
        pytest.param("25:00-05:00", "HH:MM from 00:00 to 23:59", id="10.1#3 hour 25"),
        pytest.param("09:00_17:00", "HH:MM-HH:MM", id="10.1#3 underscore"),
        pytest.param("00:00-24:00", "midnight as an end is 00:00", id="10.1#4"),
        pytest.param("", "HH:MM-HH:MM", id="10.1#5"),
        pytest.param("09:60-17:00", "HH:MM from 00:00 to 23:59", id="minute 60"),
        pytest.param("09:00:00-17:00", "HH:MM from 00:00 to 23:59", id="seconds"),
        pytest.param("09:00-17:00-18:00", "HH:MM from 00:00 to 23:59", id="three times"),
        pytest.param("٠٩:00-17:00", "HH:MM from 00:00 to 23:59", id="digits of another script"),
        pytest.param("-05:00", "HH:MM from 00:00 to 23:59", id="missing start is not midnight"),
    ],
)
def test_a_bad_window_is_refused_with_what_would_be_right(text: str, message: str) -> None:
    with pytest.raises(WindowError, match=message):
        parse_window(text)


@pytest.mark.parametrize(
    ("window", "moment", "allowed"),
    [
        pytest.param("09:00-17:00", "08:59", False, id="10.1#6"),
        pytest.param("09:00-17:00", "09:00", True, id="10.1#7"),
        pytest.param("09:00-17:00", "16:59", True, id="10.1#8"),
        pytest.param("09:00-17:00", "16:59:59.900000", True, id="a part of a second"),
        pytest.param("09:00-17:00", "17:00", False, id="10.1#9"),
        pytest.param("09:00-17:00", "23:00", False, id="10.1#10"),
        pytest.param("22:00-05:00", "21:59", False, id="10.1#11"),
        pytest.param("22:00-05:00", "22:00", True, id="10.1#12"),
        pytest.param("22:00-05:00", "23:30", True, id="10.1#13"),
        pytest.param("22:00-05:00", "00:00", True, id="10.1#14"),
        pytest.param("22:00-05:00", "03:00", True, id="10.1#15"),
        pytest.param("22:00-05:00", "04:59:59", True, id="10.1#16"),
        pytest.param("22:00-05:00", "05:00", False, id="10.1#17"),
        pytest.param("22:00-05:00", "12:00", False, id="10.1#18"),
        pytest.param("00:00-23:59", "23:59:30", False, id="10.1#19"),
    ],
)
def test_a_window_contains_its_start_and_not_its_end(
    window: str, moment: str, allowed: bool
) -> None:
    assert parse_window(window).is_open_at(utc(f"2026-06-10T{moment}"), UTC_ZONE) is allowed


ANY_HOUR = range(0, 24, 3)


@pytest.mark.parametrize("hour", [pytest.param(at, id=f"10.1#20 {at:02}:00") for at in ANY_HOUR])
def test_no_window_allows_any_time(hour: int) -> None:
    assert read_hours(None, ()).allows(utc(f"2026-06-10T{hour:02}:00"), UTC_ZONE)


@pytest.mark.parametrize("hour", [pytest.param(at, id=f"10.1#21 {at:02}:00") for at in ANY_HOUR])
def test_a_stored_window_that_cannot_be_read_blocks(hour: int) -> None:
    hours = read_hours("22:00_05:00", ())
    now = utc(f"2026-06-10T{hour:02}:00")
    assert hours.closed_by(now, UTC_ZONE) is Closed.BAD_WINDOW
    assert hours.bad_window is not None
    assert hours.opens_at(now, UTC_ZONE) is None


@pytest.mark.parametrize(
    ("zone", "window", "night", "opens", "closes"),
    [
        ("Europe/Budapest", "22:00-05:00", "2026-06-01", "06-01T20:00", "06-02T03:00"),
        ("Europe/Budapest", "22:00-05:00", "2026-03-28", "03-28T21:00", "03-29T03:00"),
        ("Europe/Budapest", "22:00-05:00", "2026-10-24", "10-24T20:00", "10-25T04:00"),
        ("Antarctica/Troll", "22:00-05:00", "2026-10-24", "10-24T20:00", "10-25T05:00"),
        ("America/New_York", "02:15-02:45", "2026-03-08", "03-08T07:00", "03-08T07:00"),
        ("America/New_York", "02:30-04:00", "2026-03-08", "03-08T07:00", "03-08T08:00"),
        ("America/New_York", "22:00-02:30", "2026-03-07", "03-08T03:00", "03-08T07:00"),
        ("America/New_York", "01:30-02:30", "2026-11-01", "11-01T05:30", "11-01T07:30"),
        ("America/New_York", "00:30-01:30", "2026-11-01", "11-01T04:30", "11-01T05:30"),
        ("Africa/Cairo", "22:00-00:30", "2026-04-23", "04-23T20:00", "04-23T22:00"),
    ],
)
def test_a_window_on_the_night_of_a_clock_change(
    zone: str, window: str, night: str, opens: str, closes: str
) -> None:
    tz = ZoneInfo(zone)
    span = parse_window(window).opened_on(date.fromisoformat(night), tz)
    assert (span.opens, span.closes) == (utc(f"2026-{opens}"), utc(f"2026-{closes}"))


def test_a_window_lost_in_a_jump_of_the_clock_opens_the_day_after() -> None:
    window, tz = parse_window("02:15-02:45"), ZoneInfo("America/New_York")
    just_before = utc("2026-03-08T06:59:59")
    assert window.opens_at(just_before, tz) == utc("2026-03-09T06:15")


@pytest.mark.parametrize(
    ("window", "moment", "is_open"),
    [
        ("01:30-02:30", "05:30", True),
        ("01:30-02:30", "06:10", True),  # 01:10 in the second pass: still the same piece
        ("01:30-02:30", "07:29", True),
        ("01:30-02:30", "07:30", False),
        ("00:30-01:30", "05:29", True),
        ("00:30-01:30", "05:30", False),
        ("00:30-01:30", "06:15", False),  # 01:15 in the second pass does not reopen it
    ],
)
def test_the_repeated_hour_neither_splits_nor_reopens_a_window(
    window: str, moment: str, is_open: bool
) -> None:
    tz = ZoneInfo("America/New_York")
    assert parse_window(window).is_open_at(utc(f"2026-11-01T{moment}"), tz) is is_open


@pytest.mark.parametrize(
    ("moment", "is_open"),
    [("2026-01-31T23:30", True), ("2026-02-01T01:59", True), ("2026-02-01T02:00", False)],
)
def test_89_an_overnight_window_runs_into_the_next_month(moment: str, is_open: bool) -> None:
    assert parse_window("23:00-02:00").is_open_at(utc(moment), UTC_ZONE) is is_open


@pytest.mark.parametrize("text", ["2026-01-01", "2026-12-25", "2027-05-03", " 2026-01-01 "])
def test_a_skip_date_is_a_date_of_the_calendar(text: str) -> None:
    assert parse_skip_date(text) == date.fromisoformat(text.strip())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2026-13-01", "calendar"),
        ("01-01-2026", "YYYY-MM-DD"),
        ("nope", "YYYY-MM-DD"),
        ("2026/01/01", "YYYY-MM-DD"),
        ("2026-02-30", "calendar"),
        ("20260101", "YYYY-MM-DD"),
        ("2026-W10-7", "YYYY-MM-DD"),
        ("9999-12-31", "1970 to 2199"),
    ],
)
def test_a_bad_skip_date_is_refused_with_what_would_be_right(text: str, message: str) -> None:
    with pytest.raises(WindowError, match=message):
        parse_skip_date(text)


@pytest.mark.parametrize(
    ("skip", "window", "tz", "now", "allowed"),
    [
        (["2026-06-10", "2026-12-25"], None, UTC_ZONE, "2026-06-10T09:00", False),
        (["2026-06-10", "2026-12-25"], None, UTC_ZONE, "2026-12-25T00:00", False),
        (["2026-06-10", "2026-12-25"], None, UTC_ZONE, "2026-06-11T09:00", True),
        (["2026-06-10", "2026-12-25"], None, UTC_ZONE, "2026-12-25T23:59:59", False),
        (["2026-06-10", "2026-12-25"], None, UTC_ZONE, "2026-12-24T23:59:59", True),
        (["2026-06-10", "2026-12-25"], None, UTC_ZONE, "2026-12-26T00:00", True),
        (["2026-12-25"], None, TOKYO, "2026-12-24T15:00", False),
        (["2026-12-25"], None, TOKYO, "2026-12-24T14:59:59", True),
        (["2026-12-25"], "22:00-05:00", UTC_ZONE, "2026-12-26T02:00", True),
        (["not-a-date"], None, UTC_ZONE, "2026-06-11T09:00", False),
    ],
    ids=[f"10.2#{number}" for number in range(1, 11)],
)
def test_nothing_starts_on_a_skip_date_of_the_zone(
    skip: list[str], window: str | None, tz: ZoneInfo, now: str, allowed: bool
) -> None:
    assert read_hours(window, skip).allows(utc(now), tz) is allowed


@pytest.mark.parametrize(
    ("skip", "window", "now", "closed_by"),
    [
        (["2026-06-10"], "22:00-05:00", "2026-06-10T12:00", Closed.SKIP_DATE),
        (["2026-06-10"], "22:00_05:00", "2026-06-11T12:00", Closed.BAD_WINDOW),
        (["junk", "2026-06-10"], "22:00-05:00", "2026-06-10T23:00", Closed.BAD_SKIP_DATE),
        (["2026-06-10"], "22:00-05:00", "2026-06-11T12:00", Closed.WINDOW),
        (["2026-06-10"], "22:00-05:00", "2026-06-11T23:00", None),
    ],
)
def test_dates_are_asked_before_the_window(
    skip: list[str], window: str, now: str, closed_by: Closed | None
) -> None:
    assert read_hours(window, skip).closed_by(utc(now), UTC_ZONE) is closed_by


@pytest.mark.parametrize(
    ("window", "skip", "now", "closes"),
    [
        ("22:00-05:00", [], "2026-06-10T23:00", "2026-06-11T05:00"),
        ("22:00-05:00", ["2026-06-11"], "2026-06-10T23:00", "2026-06-11T00:00"),
        (None, ["2026-06-11"], "2026-06-10T23:00", "2026-06-11T00:00"),
        (None, [], "2026-06-10T23:00", None),
        ("22:00-05:00", [], "2026-06-10T12:00", None),
        ("22:00-05:00", ["2026-06-10"], "2026-06-10T23:00", None),
    ],
)
def test_the_open_time_ends_with_the_window_or_the_next_skip_date(
    window: str | None, skip: list[str], now: str, closes: str | None
) -> None:
    expected = utc(closes) if closes else None
    assert read_hours(window, skip).closes_at(utc(now), UTC_ZONE) == expected


@pytest.mark.parametrize(
    ("window", "skip", "now", "opens"),
    [
        ("22:00-05:00", [], "2026-06-10T12:00", "2026-06-10T22:00"),
        ("22:00-05:00", [], "2026-06-10T23:00", "2026-06-10T23:00"),
        ("22:00-05:00", ["2026-06-10"], "2026-06-10T12:00", "2026-06-11T00:00"),
        ("22:00-05:00", ["2026-06-10", "2026-06-11"], "2026-06-10T12:00", "2026-06-12T00:00"),
        ("09:00-17:00", ["2026-06-10"], "2026-06-10T12:00", "2026-06-11T09:00"),
        (None, ["2026-06-10", "2026-06-11"], "2026-06-10T12:00", "2026-06-12T00:00"),
    ],
)
def test_the_next_opening_skips_the_dates(
    window: str | None, skip: list[str], now: str, opens: str
) -> None:
    assert read_hours(window, skip).opens_at(utc(now), UTC_ZONE) == utc(opens)


def test_a_year_of_skip_dates_has_no_opening() -> None:
    first = date(2026, 1, 1)
    skipped = frozenset(first + timedelta(days=number) for number in range(500))
    assert Hours(skip_dates=skipped).opens_at(utc("2026-01-02T00:00"), UTC_ZONE) is None


JULY = Active(utc("2026-07-01T00:00"), utc("2026-08-01T00:00"))


@pytest.mark.parametrize(
    ("now", "inside"),
    [
        ("2026-06-30T23:00", False),
        ("2026-06-30T23:59:59.999", False),
        ("2026-07-01T00:00", True),
        ("2026-07-15T12:00", True),
        ("2026-07-31T23:59:59", True),
        ("2026-08-01T00:00", False),
        ("2026-08-02T00:00", False),
    ],
)
def test_9_the_active_period_is_half_open(now: str, inside: bool) -> None:
    assert JULY.covers(utc(now)) is inside


def test_9_no_bounds_are_always_active() -> None:
    assert Active().covers(utc("2026-06-30T23:00"))


@pytest.mark.parametrize(
    "active",
    [Active(unreadable="garbage"), Active(None, utc("2026-08-01T00:00"), unreadable="garbage")],
)
def test_9_an_unreadable_bound_closes_the_gate(active: Active) -> None:
    """The original opened it; a bound that cannot be read may have been meant to close."""
    assert not active.covers(utc("2026-07-15T00:00"))
    assert active.opens_at(utc("2026-07-15T00:00")) is None


def test_a_period_to_come_says_when_it_begins() -> None:
    assert JULY.opens_at(utc("2026-06-30T00:00")) == utc("2026-07-01T00:00")
    assert JULY.opens_at(utc("2026-07-02T00:00")) is None


MOMENTS = st.integers(1_577_836_800, 2_145_916_800).map(lambda at: datetime.fromtimestamp(at, UTC))
ZONES = st.sampled_from(
    ["UTC", "Europe/Budapest", "America/New_York", "Antarctica/Troll", "Africa/Cairo",
     "Australia/Lord_Howe", "America/Havana", "Pacific/Chatham", "Asia/Kolkata"]
).map(ZoneInfo)  # fmt: skip
CLOCKS = st.times().map(lambda moment: moment.replace(second=0, microsecond=0))
WINDOWS = st.builds(Window, CLOCKS, CLOCKS).filter(lambda window: window.start != window.end)


@st.composite
def hours_near(draw: st.DrawFn) -> tuple[Hours, datetime, ZoneInfo]:
    now, tz = draw(MOMENTS), draw(ZONES)
    offsets = draw(st.frozensets(st.integers(-2, 5), max_size=4))
    skipped = frozenset(now.astimezone(tz).date() + timedelta(days=days) for days in offsets)
    return Hours(draw(st.none() | WINDOWS), skipped), now, tz


@given(hours_near())
def test_the_next_opening_is_open_and_nothing_before_it_is(
    case: tuple[Hours, datetime, ZoneInfo],
) -> None:
    hours, now, tz = case
    opens = hours.opens_at(now, tz)
    assert opens is not None
    assert opens >= now
    assert hours.allows(opens, tz)
    assert (opens == now) is hours.allows(now, tz)
    for step in range(1, 20):
        between = now + (opens - now) * step / 20
        assert between >= opens or not hours.allows(between, tz)


@given(hours_near())
def test_open_time_lasts_until_its_close_and_no_longer(
    case: tuple[Hours, datetime, ZoneInfo],
) -> None:
    hours, now, tz = case
    closes = hours.closes_at(now, tz)
    if closes is None:
        assert not hours.allows(now, tz) or hours.window is None
        return
    assert closes > now
    for step in range(20):
        assert hours.allows(now + (closes - now) * step / 20, tz)


@given(WINDOWS, MOMENTS, ZONES)
def test_a_window_is_written_as_it_is_read(window: Window, now: datetime, tz: ZoneInfo) -> None:
    again = parse_window(str(window))
    assert again == window
    assert again.closes_at(now, tz) == window.closes_at(now, tz)
