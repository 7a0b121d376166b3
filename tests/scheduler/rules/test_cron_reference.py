"""The reference page's examples of fires are what the code answers."""

import re
from datetime import datetime
from itertools import islice
from pathlib import Path

import pytest

from scheduler.rules.cron import CronError, parse
from scheduler.rules.durations import parse_duration
from scheduler.rules.zones import zone

PAGE = (Path(__file__).parents[3] / "docs/reference/triggers-and-zones.md").read_text()
ROW = re.compile(r"^\| `([^`]+)` \| (\w+/\w+) \| ([\d :-]+) \| ([\d :+,-]+) \|$", re.MULTILINE)
EXAMPLES = ROW.findall(PAGE)


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == 11


@pytest.mark.parametrize(("text", "name", "after", "fires"), EXAMPLES)
def test_an_example_of_the_page_is_what_fires(text: str, name: str, after: str, fires: str) -> None:
    tz, expected = zone(name), fires.split(", ")

    found = parse(text).fires(datetime.fromisoformat(after).replace(tzinfo=tz), tz)

    told = [f"{fire.astimezone(tz):%Y-%m-%d %H:%M%z}"[:-2] for fire in islice(found, len(expected))]
    assert told == expected


@pytest.mark.parametrize("text", ["5-1", "22-2", "1,,2", "1,", "mon", "?", "H", "R", "~"])
def test_what_the_page_calls_refused_is_refused(text: str) -> None:
    assert f"`{text}`" in PAGE or f"`{text}" in PAGE
    with pytest.raises(CronError):
        parse(f"{text} * * * *")


@pytest.mark.parametrize("text", ["90s", "5m", "1h 30m", "1.5d", "0"])
def test_a_duration_of_the_page_is_read(text: str) -> None:
    assert f"`{text}`" in PAGE
    assert parse_duration(text) is not None
