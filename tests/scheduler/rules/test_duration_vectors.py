"""Every recorded answer of humantime 2.4: what is read, and how it is written back."""

import json
from pathlib import Path
from typing import Any

import pytest

from scheduler.rules.durations import DurationError, format_duration, parse_duration_ns

DATA = Path(__file__).parents[2] / "data" / "duration_vectors.json"
CASES: list[dict[str, Any]] = json.loads(DATA.read_text())["cases"]


@pytest.mark.parametrize(
    "case", [pytest.param(each, id=f"{at}-{each['input']!a}") for at, each in enumerate(CASES)]
)
def test_a_duration_reads_and_writes_as_recorded(case: dict[str, Any]) -> None:
    if not case["ok"]:
        with pytest.raises(DurationError) as caught:
            parse_duration_ns(case["input"])
        assert str(caught.value)
        return

    nanoseconds = parse_duration_ns(case["input"])

    # Numbers beyond 2**53 are recorded as texts.
    assert nanoseconds == int(case["nanoseconds"])
    assert format_duration(nanoseconds) == case["formatted"]
