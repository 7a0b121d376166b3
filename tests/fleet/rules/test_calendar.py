"""The wall clock: `at`, `days`, what they are lowered to, and the next fire."""

from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import pytest

from fleet.rules.calendar import (
    At,
    CalendarError,
    clock_change_note,
    lower,
    next_fire,
    oneshot,
    parse_at,
    parse_day,
)
from fleet.rules.manifest import ManifestError, parse_schedule
from fleet.rules.when import Calendar
from tests.fleet.rules.manifest.documents import schedule

UTC_ZONE = ZoneInfo("UTC")
BUDAPEST = ZoneInfo("Europe/Budapest")
JUNE_10 = datetime(2026, 6, 10, 9, 0)  # noqa: DTZ001  # a wall clock


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        pytest.param("09:00", time(9), id="8.1#1"),
        pytest.param("18:30", time(18, 30), id="8.1#2"),
        pytest.param(" 09:00 ", time(9), id="8.1#3"),
        pytest.param("00:00", time(0), id="8.1#4"),
        pytest.param("2026/12/25 00:00", datetime(2026, 12, 25), id="8.1#5"),  # noqa: DTZ001
        pytest.param("2026-06-10 09:00", JUNE_10, id="8.1#6"),
        pytest.param("2026-06-10T09:00", JUNE_10, id="8.1#7"),
        pytest.param("2026/06/10 09:00", JUNE_10, id="8.1#8"),
    ],
)
def test_at_is_a_time_of_day_or_a_date(text: str, moment: time | datetime) -> None:
    assert parse_at(text) == moment


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("25:00", id="8.1#9 25:00"),
        pytest.param("09:60", id="8.1#9 09:60"),
        pytest.param("9", id="8.1#9 9"),
        pytest.param("noon", id="8.1#9 noon"),
        pytest.param("2026-13-01 09:00", id="8.1#10"),
        pytest.param("24:00", id="8.1#11"),
        pytest.param("09:00:00", id="8.1#12"),
        "",
        "9:00",
        "2026/06/10T09:00",
        "2026-06/10 09:00",
        "2026-06-10  09:00",
        "2026-06-10",
        "2026-06-10 24:00",
        "2200-01-01 00:00",
        "1969-12-31 23:59",
        "\u0660\u0669:00",
        "09:00\n09:00",
    ],
)
def test_another_at_is_refused(text: str) -> None:
    with pytest.raises(CalendarError) as caught:
        parse_at(text)
    assert "write" in str(caught.value) or "calendar" in str(caught.value)


@pytest.mark.parametrize("days", [pytest.param(["mon"], id="8.1#13")])
def test_a_date_with_days_is_refused(days: list[str]) -> None:
    when = {"calendar": {"at": "2026-06-10 09:00", "days": days}}
    with pytest.raises(ManifestError, match=r"when\.calendar\.days: a date happens once"):
        parse_schedule(schedule(when=when))


@pytest.mark.parametrize(
    "days",
    [
        pytest.param(["mon-fri"], id="8.2#1"),
        pytest.param(["mon", "wed", "sun"], id="8.2#2"),
        pytest.param(["1-5"], id="8.2#3"),
        *(
            pytest.param([day], id=f"8.2#4 {day}")
            for day in ("tue#2", "TUE#2", "2#2", "fri#1", "sun#5")
        ),
        pytest.param(["tue#2", "thu#2"], id="8.2#5"),
        *(
            pytest.param([day], id=f"8.2#6 {day}")
            for day in ("friL", "sunL", "5L", "0L", "7L", "FRIL", "fril")
        ),
        pytest.param(["monL", "friL"], id="8.2#7"),
        pytest.param([], id="8.2#8 every day"),
        pytest.param(["*"], id="8.2#17"),
        pytest.param(["*", "mon"], id="a star and a day"),
        pytest.param(["sat-sun"], id="sat-sun"),
        pytest.param(["mon-fri", "friL", "tue#2"], id="mixed"),
    ],
)
def test_days_are_accepted_and_fire_within_five_weeks(days: list[str]) -> None:
    found = parse_schedule(schedule(when={"calendar": {"at": "09:00", "days": days}}))
    assert isinstance(found.when, Calendar)
    fire = next_fire(found.when, datetime(2026, 6, 1, tzinfo=UTC), UTC_ZONE)
    # The fifth Sunday is the rarest: 2026-08-30.
    assert fire is not None
    assert fire <= datetime(2026, 8, 30, 9, tzinfo=UTC)
    assert (fire.hour, fire.minute) == (9, 0)


@pytest.mark.parametrize(
    "token",
    [
        pytest.param("funday", id="8.2#9"),
        pytest.param("monday", id="8.2#10"),
        pytest.param("mon-", id="8.2#11"),
        *(pytest.param(token, id=f"8.2#12 {token}") for token in ("tue#0", "tue#6", "tue#x")),
        *(pytest.param(token, id=f"8.2#13 {token}") for token in ("mon-fri#2", "funday#2")),
        *(pytest.param(token, id=f"8.2#14 {token}") for token in ("L", "l")),
        *(
            pytest.param(token, id=f"8.2#15 {token}")
            for token in ("mon-friL", "fundayL", "8L", "*L", "fri L")
        ),
        pytest.param("8", id="8.2#16"),
        "",
        " mon",
        "mon,tue",
        "mon/2",
        "*/2",
        "\u0131",
    ],
)
def test_another_day_is_refused_and_quoted(token: str) -> None:
    with pytest.raises(CalendarError) as caught:
        parse_day(token)
    assert f'"{token}"' in str(caught.value)


def test_a_lone_l_is_told_to_need_a_weekday() -> None:
    with pytest.raises(CalendarError, match="needs a weekday"):
        parse_day("L")


@pytest.mark.parametrize(
    ("calendar", "cron"),
    [
        pytest.param(Calendar("09:00", ("mon-fri",)), "0 9 * * mon-fri", id="7#5"),
        pytest.param(Calendar("18:30"), "30 18 * * *", id="7#6"),
        pytest.param(Calendar("09:00", ("MON", "friL")), "0 9 * * mon,fril", id="case"),
        pytest.param(Calendar(cron="*/5 9-17 * * 1-5"), "*/5 9-17 * * 1-5", id="cron"),
    ],
)
def test_a_repeating_calendar_is_lowered_to_five_fields(calendar: Calendar, cron: str) -> None:
    lowered = lower(calendar, UTC_ZONE)
    assert not isinstance(lowered, At)
    assert lowered.text == cron


@pytest.mark.parametrize(
    ("tz", "hour"),
    [pytest.param(UTC_ZONE, 9, id="7#7"), pytest.param(BUDAPEST, 7, id="7#7 Budapest")],
)
def test_a_dated_calendar_is_lowered_to_one_instant(tz: ZoneInfo, hour: int) -> None:
    assert lower(Calendar("2026-06-10 09:00"), tz) == At(
        JUNE_10, datetime(2026, 6, 10, hour, tzinfo=UTC)
    )


@pytest.mark.parametrize(
    "text", [pytest.param("25:00", id="7#8"), pytest.param("junk", id="7#8 junk")]
)
def test_a_bad_at_is_an_error_not_a_schedule_that_never_fires(text: str) -> None:
    """Ours: nothing unparseable is ever stored."""
    with pytest.raises(CalendarError):
        lower(Calendar(text), UTC_ZONE)


def test_a_date_fires_once_and_only_after_now() -> None:
    calendar, at = Calendar("2026-06-10 09:00"), datetime(2026, 6, 10, 9, tzinfo=UTC)
    assert next_fire(calendar, datetime(2026, 6, 10, 8, 59, 59, tzinfo=UTC), UTC_ZONE) == at
    assert next_fire(calendar, at, UTC_ZONE) is None


@pytest.mark.parametrize(
    ("text", "zone", "instant"),
    [
        pytest.param("2026-03-29 02:30", "Europe/Budapest", "2026-03-29T01:00", id="gap"),
        pytest.param("2026-10-25 02:30", "Europe/Budapest", "2026-10-25T00:30", id="fold"),
        pytest.param("2026-11-01 00:30", "America/Havana", "2026-11-01T04:30", id="8.5 fold"),
        pytest.param(
            "2026-09-06 00:30", "America/Santiago", "2026-09-06T04:00", id="8.5 gap, ours"
        ),
        pytest.param("2026-06-10 09:00", "Asia/Tokyo", "2026-06-10T00:00", id="ordinary"),
    ],
)
def test_a_date_on_a_day_of_clock_change_is_the_first_instant(
    text: str, zone: str, instant: str
) -> None:
    found = oneshot(Calendar(text), ZoneInfo(zone))
    assert found is not None
    assert found.instant == datetime.fromisoformat(instant).replace(tzinfo=UTC)


@pytest.mark.parametrize("calendar", [Calendar("09:00"), Calendar(cron="0 9 * * *")])
def test_a_repeating_calendar_has_no_single_moment(calendar: Calendar) -> None:
    assert oneshot(calendar, UTC_ZONE) is None


GAP_NOTE = (
    "2026-03-29 02:30 does not exist in Europe/Budapest: the clock jumps over it; it fires at 03:00"
)


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("2026-06-10 09:00", None),
        (
            "2026-03-29 02:30",
            GAP_NOTE,
        ),
        (
            "2026-10-25 02:30",
            "2026-10-25 02:30 comes twice in Europe/Budapest; it fires at the first, 02:30 CEST",
        ),
    ],
)
def test_a_date_in_a_gap_or_an_overlap_is_explained(text: str, note: str | None) -> None:
    found = oneshot(Calendar(text), BUDAPEST)
    assert found is not None
    assert clock_change_note(found, BUDAPEST) == note
