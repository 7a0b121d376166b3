"""Every recorded fact about cron expressions: accepted or not, and the next fires."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from scheduler.rules.cron import CronError, parse
from scheduler.rules.zones import zone

DATA = Path(__file__).parents[2] / "data" / "cron_vectors.json"
VECTORS: list[dict[str, Any]] = json.loads(DATA.read_text())["vectors"]


def fires(vector: dict[str, Any], count: int) -> list[datetime]:
    cron = parse(vector["expr"], day_rule=vector["day_rule"], fields=(5, 6, 7))
    tz = zone(vector["tz"])
    found: list[datetime] = []
    moment: datetime | None = datetime.fromisoformat(vector["after"])
    while len(found) < count and moment is not None:
        moment = cron.next_after(moment, tz)
        if moment is not None:
            found.append(moment)
    return found


@pytest.mark.parametrize(
    "vector", [pytest.param(each, id=str(each["id"])) for each in VECTORS if each["valid"]]
)
def test_a_valid_expression_fires_when_the_vector_says(vector: dict[str, Any]) -> None:
    expected = [datetime.fromisoformat(text) for text in vector["next"] or []]

    assert fires(vector, max(1, len(expected))) == expected


@pytest.mark.parametrize(
    "vector", [pytest.param(each, id=str(each["id"])) for each in VECTORS if not each["valid"]]
)
def test_an_invalid_expression_is_refused_with_a_reason(vector: dict[str, Any]) -> None:
    with pytest.raises(CronError) as caught:
        parse(vector["expr"], day_rule=vector["day_rule"], fields=(5, 6, 7))

    assert str(caught.value)
