"""What a calendar will do, and what an operator is told about it."""

from collections.abc import Mapping
from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import pytest

from fleet.rules.manifest import ScheduleManifest, parse_schedule
from fleet.rules.preview import diagnostics, empty_note, is_outside_window, preview
from fleet.rules.when import Calendar, PerPc, When
from fleet.rules.windows import Window, read_hours
from tests.fleet.rules.manifest.documents import schedule

UTC_ZONE = ZoneInfo("UTC")
PER_PC: dict[str, object] = {"per_pc": {"every": "6h"}}
NIGHT = {"constraints": {"window": "22:00-05:00"}}


def at(text: str, *days: str) -> dict[str, object]:
    return {"calendar": {"at": text, "days": list(days)}}


def built(
    when: Mapping[str, object], extra: Mapping[str, object] | None = None
) -> ScheduleManifest:
    return parse_schedule(schedule(when=when, tz="utc", **(extra or {})))


def moment(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-{text}").replace(tzinfo=UTC)


def skip(*days: str) -> dict[str, object]:
    return {"constraints": {"skip_dates": [f"2026-{day}" for day in days]}}


WEDNESDAY = "06-10T00:00"


@pytest.mark.parametrize(
    ("when", "extra", "now", "count", "fires"),
    [
        pytest.param(
            at("09:00", "mon-fri"),
            {},
            WEDNESDAY,
            5,
            ["06-10T09", "06-11T09", "06-12T09", "06-15T09", "06-16T09"],
            id="8.4#1",
        ),
        pytest.param(
            at("09:00", "tue#2"), {}, "06-01T00:00", 2, ["06-09T09", "07-14T09"], id="8.4#2"
        ),
        pytest.param(at("22:00", "friL"), {}, WEDNESDAY, 2, ["06-26T22", "07-31T22"], id="8.4#3"),
        pytest.param(PER_PC, {}, WEDNESDAY, 5, [], id="8.4#4"),
        pytest.param(at("09:00"), {}, WEDNESDAY, 0, [], id="8.4#5"),
        pytest.param(
            at("09:00"),
            {"active": {"from": "2026-06-15", "until": "2026-06-17"}},
            WEDNESDAY,
            5,
            ["06-15T09", "06-16T09"],
            id="8.4#6",
        ),
        pytest.param(at("09:00"), NIGHT, WEDNESDAY, 5, [], id="8.4#7 five"),
        pytest.param(at("09:00"), NIGHT, WEDNESDAY, 50, [], id="8.4#7 fifty"),
        pytest.param(at("2026-06-10 09:00"), {}, "06-11T00:00", 5, [], id="8.4#8"),
        pytest.param(at("2026-06-10 09:00"), {}, "06-01T00:00", 5, ["06-10T09"], id="8.4#9"),
        pytest.param(
            at("09:00", "mon-fri"),
            skip("06-11", "06-13"),
            WEDNESDAY,
            4,
            ["06-10T09", "06-12T09", "06-15T09", "06-16T09"],
            id="8.4#10",
        ),
        pytest.param(
            at("09:00"),
            skip("06-11", "06-13"),
            WEDNESDAY,
            4,
            ["06-10T09", "06-12T09", "06-14T09", "06-15T09"],
            id="8.4#11",
        ),
        pytest.param(at("09:00"), {}, "06-09T08:00", 1, ["06-09T09"], id="8.4#12"),
        pytest.param(at("09:00"), {}, "06-09T09:00", 1, ["06-10T09"], id="8.4#13 exclusive"),
        pytest.param(at("09:00"), {}, "06-10T08:59:59", 1, ["06-10T09"], id="8.4#14"),
        pytest.param(at("09:00"), {"enabled": False}, WEDNESDAY, 1, ["06-10T09"], id="disabled"),
    ],
)
def test_the_next_fires(
    when: dict[str, object], extra: dict[str, object], now: str, count: int, fires: list[str]
) -> None:
    found = preview(built(when, extra), now=moment(now), count=count, local=UTC_ZONE)
    assert found == tuple(moment(f"{fire}:00") for fire in fires)


def test_local_means_the_zone_that_is_given() -> None:
    local = parse_schedule(schedule(when=at("09:00")))
    [fire] = preview(local, now=moment(WEDNESDAY), count=1, local=ZoneInfo("Europe/Budapest"))
    assert fire == moment("06-10T07:00")


def test_an_empty_preview_says_why() -> None:
    assert empty_note(built(PER_PC)).startswith("Looks every minute")
    assert empty_note(built(at("09:00"))).startswith("No fires: ")


NIGHT_WINDOW = Window(time(22), time(5))


@pytest.mark.parametrize(
    ("when", "window", "outside"),
    [
        pytest.param(Calendar("09:00"), NIGHT_WINDOW, True, id="8.5#1"),
        pytest.param(Calendar("23:00"), NIGHT_WINDOW, False, id="8.5#2"),
        pytest.param(Calendar("22:00"), NIGHT_WINDOW, False, id="8.5#3 start inclusive"),
        pytest.param(Calendar("05:00"), NIGHT_WINDOW, True, id="8.5#4 end exclusive"),
        pytest.param(PerPc(), NIGHT_WINDOW, False, id="8.5#5 per_pc"),
        pytest.param(Calendar("09:00"), None, False, id="8.5#6 none"),
        pytest.param(Calendar("09:00"), read_hours("garbage", []).window, False, id="8.5#7 bad"),
        pytest.param(Calendar("2026-06-10 09:00"), NIGHT_WINDOW, True, id="a date"),
        pytest.param(Calendar("12:00"), Window(time(9), time(17)), False, id="a day's window"),
        pytest.param(Calendar("17:00"), Window(time(9), time(17)), True, id="a day's window, end"),
        pytest.param(Calendar(cron="0 12 * * *"), NIGHT_WINDOW, False, id="cron is not judged"),
    ],
)
def test_a_time_that_never_falls_into_the_window(
    when: When, window: Window | None, outside: bool
) -> None:
    assert is_outside_window(when, window) is outside


@pytest.mark.parametrize(
    ("when", "extra", "now", "notes"),
    [
        pytest.param(at("09:00"), {}, WEDNESDAY, (), id="nothing to say"),
        pytest.param(at("2026-06-10 09:00"), {}, "06-10T09:00", (), id="8.5 now is not past"),
        pytest.param(
            at("2026-06-10 09:00"),
            {},
            "06-10T09:00:01",
            ("its time is past: 2026-06-10 09:00 UTC",),
            id="8.5 past",
        ),
        pytest.param(
            at("09:00"),
            NIGHT,
            WEDNESDAY,
            ("fires outside its window 22:00-05:00: it never runs",),
            id="outside",
        ),
        pytest.param(
            PER_PC,
            {"target": {}},
            WEDNESDAY,
            ("has no target: nothing is dispatched",),
            id="no target",
        ),
        pytest.param(
            PER_PC,
            {"active": {"until": "2026-06-10"}},
            WEDNESDAY,
            ("its active period is over",),
            id="over",
        ),
        pytest.param(
            at("2026-10-25 02:30"),
            {"tz": "Europe/Budapest"},
            WEDNESDAY,
            ("2026-10-25 02:30 comes twice in Europe/Budapest; it fires at the first, 02:30 CEST",),
            id="overlap",
        ),
    ],
)
def test_what_an_operator_should_know(
    when: dict[str, object], extra: dict[str, object], now: str, notes: tuple[str, ...]
) -> None:
    found = parse_schedule(schedule(when=when, **({"tz": "utc"} | extra)))
    assert diagnostics(found, now=moment(now), local=UTC_ZONE) == notes


def test_a_cron_brings_its_own_warnings() -> None:
    found = built({"calendar": {"cron": "*/90 * * * *"}})
    assert len(diagnostics(found, now=moment(WEDNESDAY), local=UTC_ZONE)) == 1
