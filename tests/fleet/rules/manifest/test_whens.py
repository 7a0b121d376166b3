"""`when`: exactly one of three shapes, and what a wrong one is told."""

from datetime import timedelta

import pytest

from fleet.rules.manifest import ManifestError, parse_schedule
from fleet.rules.when import Calendar, PerPc, PerTarget, When, cooldown, is_reconcile, words
from tests.fleet.rules.manifest.documents import schedule


def when_of(when: object) -> When:
    return parse_schedule(schedule(when=when)).when


def problems_of(when: object) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        when_of(when)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("when", "expected", "text"),
    [
        pytest.param({"per_pc": "once"}, PerPc(), "per_pc once", id="7#9"),
        pytest.param(
            {"per_pc": {"every": "6h"}}, PerPc(timedelta(hours=6)), "per_pc every 6h", id="7#10"
        ),
        pytest.param(
            {"per_target": {"every": "24h"}},
            PerTarget(timedelta(hours=24)),
            "per_target every 24h",
            id="7#11",
        ),
        pytest.param({"per_target": "once"}, PerTarget(), "per_target once", id="per_target once"),
        pytest.param(
            {"calendar": {"at": "09:00", "days": ["mon-fri"]}},
            Calendar("09:00", ("mon-fri",)),
            "at 09:00 [mon-fri]",
            id="7#12",
        ),
        pytest.param({"calendar": {"at": "18:30"}}, Calendar("18:30"), "at 18:30", id="7#13"),
        pytest.param(
            {"calendar": {"at": "2026-06-10 09:00"}},
            Calendar("2026-06-10 09:00"),
            "at 2026-06-10 09:00",
            id="7#14",
        ),
        pytest.param(
            {"calendar": {"at": "09:00", "days": ["mon", "wed"]}},
            Calendar("09:00", ("mon", "wed")),
            "at 09:00 [mon,wed]",
            id="7.2 two tokens",
        ),
        pytest.param(
            {"calendar": {"at": " 09:00 ", "days": []}}, Calendar("09:00"), "at 09:00", id="trimmed"
        ),
        pytest.param(
            {"calendar": {"at": "09:00", "days": [1, 3]}},
            Calendar("09:00", ("1", "3")),
            "at 09:00 [1,3]",
            id="days as numbers",
        ),
        pytest.param(
            {"calendar": {"cron": "0 9 * * mon-fri"}},
            Calendar(cron="0 9 * * mon-fri"),
            "cron 0 9 * * mon-fri",
            id="cron",
        ),
        pytest.param(
            {"per_pc": "once_per_version"},
            PerPc(per_version=True),
            "per_pc once_per_version",
            id="once_per_version",
        ),
        pytest.param({"per_pc": {"every": "0s"}}, PerPc(timedelta()), "per_pc every 0s", id="0s"),
    ],
)
def test_each_shape_is_read_and_said_in_one_line(when: object, expected: When, text: str) -> None:
    found = when_of(when)
    assert found == expected
    assert words(found) == text


@pytest.mark.parametrize(
    ("when", "mode", "counts_for"),
    [
        pytest.param({"per_pc": "once"}, PerPc, None, id="7#1"),
        pytest.param({"per_pc": {"every": "6h"}}, PerPc, timedelta(hours=6), id="7#2"),
        pytest.param({"per_target": "once"}, PerTarget, None, id="7#3"),
        pytest.param({"per_target": {"every": "24h"}}, PerTarget, timedelta(hours=24), id="7#4"),
        pytest.param({"calendar": {"at": "09:00"}}, Calendar, None, id="calendar"),
    ],
)
def test_a_condition_is_looked_at_every_minute_and_says_how_long_a_success_counts(
    when: object, mode: type, counts_for: timedelta | None
) -> None:
    found = when_of(when)
    assert isinstance(found, mode)
    assert is_reconcile(found) is (mode is not Calendar)
    assert cooldown(found) == counts_for


PER_PC = "when.per_pc: must be once or once_per_version or {every: 6h}"
EXAMPLE = "one of per_pc, per_target, calendar must be set"


@pytest.mark.parametrize(
    ("when", "problems"),
    [
        pytest.param(
            {"per_pc": "onec"},
            [f'{PER_PC}, not "onec"; did you mean "once"?'],
            id="onec",
        ),
        pytest.param(
            {"per_pc": {"evry": "6h"}},
            [
                "when.per_pc.every: is required, for example every: 6h",
                'when.per_pc.evry: unknown key; did you mean "every"?',
            ],
            id="evry",
        ),
        pytest.param(
            {"hourly": {}},
            [
                f"when: {EXAMPLE}, for example when: {{per_pc: {{every: 6h}}}}",
                "when.hourly: unknown key",
            ],
            id="unknown shape",
        ),
        pytest.param(
            {"per_pc": "once", "calendar": {"at": "09:00"}},
            ["when: only one of per_pc, per_target, calendar may be set"],
            id="two shapes",
        ),
        pytest.param(
            {"cron": "0 9 * * *"},
            ['when.cron: write it as calendar: {cron: "0 9 * * mon-fri"}'],
            id="old cron",
        ),
        pytest.param(
            {"per_target": "once_per_version"},
            ['when.per_target: must be once or {every: 6h}, not "once_per_version"'],
            id="per_target per version",
        ),
        pytest.param(
            {"per_pc": None},
            ["when.per_pc: must be once or once_per_version or {every: 6h}, not nothing"],
            id="null",
        ),
        pytest.param(
            {"calendar": {"at": "2026-06-10 09:00", "days": ["mon"]}},
            ["when.calendar.days: a date happens once and has no days; remove days or the date"],
            id="8.1#13 date with days",
        ),
        pytest.param(
            {"calendar": {"at": "09:00", "cron": "0 9 * * *"}},
            ["when.calendar.at: stands beside cron; write one of them"],
            id="at and cron",
        ),
        pytest.param(
            {"calendar": {}},
            ['when.calendar.at: is required, for example at: "09:00", or cron: "0 9 * * mon-fri"'],
            id="empty calendar",
        ),
        pytest.param(
            {"calendar": "09:00"},
            ["when.calendar: must be a mapping (at and days, or cron), not text"],
            id="calendar as text",
        ),
        pytest.param(
            "once",
            ["when: must be a mapping (per_pc, per_target or calendar), not text"],
            id="text",
        ),
    ],
)
def test_a_wrong_shape_is_told_what_would_be_right(when: object, problems: list[str]) -> None:
    assert problems_of(when) == problems


@pytest.mark.parametrize(
    ("calendar", "path"),
    [
        ({"cron": "61 * * * *"}, "when.calendar.cron"),
        ({"cron": "0 0 9 * * *"}, "when.calendar.cron"),
        ({"cron": ""}, "when.calendar.cron"),
        ({"cron": "0 9 * * *" + " " * 600}, "when.calendar.cron"),
        ({"at": "25:00"}, "when.calendar.at"),
        ({"at": 900}, "when.calendar.at"),
        ({"at": "09:00", "days": ["funday"]}, "when.calendar.days[0]"),
        ({"at": "09:00", "days": ["mon", 8]}, "when.calendar.days[1]"),
        ({"at": "09:00", "days": ["fri-mon"]}, "when.calendar.days"),
        ({"at": "09:00", "days": ["mon"] * 33}, "when.calendar.days"),
    ],
)
def test_a_bad_calendar_is_refused_at_its_key(calendar: object, path: str) -> None:
    [found] = problems_of({"calendar": calendar})
    assert found.startswith(f"{path}: ")
