"""T-31: zone names, and which instants show a wall clock on the days when clocks are changed."""

import subprocess
import sys
import zoneinfo
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
import tzdata
from hypothesis import given
from hypothesis import strategies as st

from scheduler.rules.zones import (
    TZDATA_VERSION,
    ZoneError,
    at,
    first_change,
    instants,
    jump_over,
    zone,
    zone_names,
)

NEW_YORK = zone("America/New_York")
APIA = zone("Pacific/Apia")


def wall(text: str) -> datetime:
    return datetime.fromisoformat(text)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "name", ["UTC", "Europe/Budapest", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "EST5EDT"]
)
def test_a_name_of_the_database_is_a_zone(name: str) -> None:
    assert zone(name).key == name


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Europe/Budapesta", "'Europe/Budapesta' is no time zone; did you mean Europe/Budapest?"),
        ("europe/budapest", "'europe/budapest' is no time zone; did you mean Europe/Budapest?"),
        (" UTC", "' UTC' is no time zone; did you mean UTC?"),
        ("", "'' is no time zone; names look like Europe/Budapest or UTC"),
        ("+02:00", "'+02:00' is no time zone; names look like Europe/Budapest or UTC"),
        ("x" * 5000, "a time zone name has at most 64 characters, this has 5000"),
        (None, "a time zone is a name such as Europe/Budapest, not None"),
        (UTC, "a time zone is a name such as Europe/Budapest, not datetime.timezone.utc"),
    ],
)
def test_a_bad_name_is_refused_with_a_proposal(name: object, sentence: str) -> None:
    with pytest.raises(ZoneError) as caught:
        zone(name)

    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    "name",
    [
        *("/etc/passwd", "../../etc/passwd", "Europe", "America/Argentina", "Europe/", "a\0b"),
        *("posix/Europe/Paris", "right/Europe/Paris", "localtime", "posixrules", "zone.tab", "."),
    ],
)
def test_files_folders_and_doubles_are_no_zones(name: str) -> None:
    with pytest.raises(ZoneError):
        zone(name)


@given(st.text(max_size=70))
def test_any_text_is_a_zone_or_a_zone_error(name: str) -> None:
    with suppress(ZoneError):
        assert zone(name).key == name


def test_zone_data_come_from_the_pinned_package_and_say_their_version() -> None:
    assert tuple(zoneinfo.TZPATH) == ()
    assert tzdata.IANA_VERSION == TZDATA_VERSION
    assert not any(name.startswith(("posix", "right")) for name in zone_names())


def test_the_modules_need_no_django() -> None:
    code = (
        "import sys, scheduler.rules.cron, scheduler.rules.durations\n"
        "sys.exit(any(name.split('.')[0] == 'django' for name in sys.modules))"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[3], check=False, timeout=60
    )

    assert done.returncode == 0


def test_an_ordinary_wall_clock_is_one_instant() -> None:
    assert instants(wall("2026-07-01 09:00"), NEW_YORK) == (utc("2026-07-01 13:00"),)


def test_a_wall_clock_in_a_gap_is_no_instant_and_at_takes_the_jump() -> None:
    missing = wall("2026-03-08 02:30")

    assert instants(missing, NEW_YORK) == ()
    assert at(missing, NEW_YORK) == utc("2026-03-08 07:00")
    assert jump_over(missing, NEW_YORK) == (utc("2026-03-08 07:00"), timedelta(hours=1))


def test_a_repeated_wall_clock_is_two_instants_and_at_takes_the_first() -> None:
    twice = wall("2026-11-01 01:30")

    assert instants(twice, NEW_YORK) == (utc("2026-11-01 05:30"), utc("2026-11-01 06:30"))
    assert at(twice, NEW_YORK) == utc("2026-11-01 05:30")


@pytest.mark.parametrize(
    ("name", "midnight", "instant"),
    [
        ("America/Sao_Paulo", "2018-11-04 00:00", "2018-11-04 03:00"),
        ("Africa/Cairo", "2026-04-24 00:00", "2026-04-23 22:00"),
        ("America/Havana", "2025-11-02 00:00", "2025-11-02 04:00"),
    ],
)
def test_a_day_begins_where_its_midnight_is_missing_or_comes_twice(
    name: str, midnight: str, instant: str
) -> None:
    assert at(wall(midnight), zone(name)) == utc(instant)


def test_a_day_that_is_left_out_has_no_length() -> None:
    assert at(wall("2011-12-30 00:00"), APIA) == at(wall("2011-12-31 00:00"), APIA)


@pytest.mark.parametrize(
    ("name", "opens", "closes", "lasts"),
    [
        ("Europe/Budapest", "2026-06-01T22:00+02:00", "2026-06-02T05:00+02:00", 7),
        ("Europe/Budapest", "2026-03-28T22:00+01:00", "2026-03-29T05:00+02:00", 6),
        ("Europe/Budapest", "2026-10-24T22:00+02:00", "2026-10-25T05:00+01:00", 8),
        ("Antarctica/Troll", "2026-10-24T22:00+02:00", "2026-10-25T05:00+00:00", 9),
        ("America/New_York", "2026-11-01T01:30-04:00", "2026-11-01T02:30-05:00", 2),
        ("America/New_York", "2026-11-01T00:30-04:00", "2026-11-01T01:30-04:00", 1),
    ],
)
def test_a_window_lasts_from_wall_clock_to_wall_clock(
    name: str, opens: str, closes: str, lasts: int
) -> None:
    start, end = datetime.fromisoformat(opens), datetime.fromisoformat(closes)

    assert at(start.replace(tzinfo=None), zone(name)) == start
    assert at(end.replace(tzinfo=None), zone(name)) == end
    assert end - start == timedelta(hours=lasts)


@pytest.mark.parametrize(
    ("name", "opens", "closes", "instants_of_both"),
    [
        ("America/New_York", "2026-03-08 02:15", "2026-03-08 02:45", ("07:00", "07:00")),
        ("America/New_York", "2026-03-08 02:30", "2026-03-08 04:00", ("07:00", "08:00")),
        ("America/New_York", "2026-03-07 22:00", "2026-03-08 02:30", ("03:00", "07:00")),
        ("Africa/Cairo", "2026-04-23 22:00", "2026-04-24 00:30", ("20:00", "22:00")),
    ],
)
def test_a_bound_of_a_window_in_a_gap_is_the_jump(
    name: str, opens: str, closes: str, instants_of_both: tuple[str, str]
) -> None:
    found = (at(wall(opens), zone(name)), at(wall(closes), zone(name)))

    assert tuple(f"{each:%H:%M}" for each in found) == instants_of_both


def test_a_wall_clock_with_a_zone_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="no zone of its own"):
        instants(utc("2026-07-01 09:00"), NEW_YORK)


def test_the_first_change_is_found_near_and_far_and_includes_its_end() -> None:
    change = utc("2026-03-08 07:00")
    second = timedelta(seconds=1)

    assert first_change(NEW_YORK, utc("2026-01-01 00:00"), utc("2027-01-01 00:00")) == change
    assert first_change(NEW_YORK, change - second, change) == change
    assert first_change(NEW_YORK, change, change + timedelta(days=30)) is None
    assert first_change(NEW_YORK, utc("2026-01-01 00:00"), change - second) is None
    assert first_change(timezone(timedelta(hours=5)), change, change + timedelta(days=900)) is None
