"""Schedules as sentences."""

import pytest

from fleet.rules.manifest import parse_schedule
from fleet.rules.plain_words import target_words, when_words, zone_words
from fleet.rules.versions import bumped


def schedule(**keys: object):  # type: ignore[no-untyped-def]  # a manifest
    base = {"id": "s", "job_id": "j", "when": {"per_pc": "once"}}
    return parse_schedule(base | keys)


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ({"per_pc": {"every": "6h"}}, "each PC, every 6h"),
        ({"per_pc": "once"}, "each PC, once"),
        ({"per_pc": "once_per_version"}, "each PC, once for each version"),
        ({"per_target": {"every": "24h"}}, "one PC of the target, every 24h"),
        ({"per_target": "once"}, "one PC of the target, once"),
        ({"calendar": {"at": "2026-06-10 09:00"}}, "once, at 2026-06-10 09:00"),
    ],
)
def test_when_is_a_sentence(when: object, words: str) -> None:
    assert when_words(schedule(when=when).when) == words


def test_a_time_of_day_is_described_by_the_cron_engine() -> None:
    words = when_words(schedule(when={"calendar": {"at": "09:00", "days": ["mon-fri"]}}).when)

    assert "09:00" in words
    assert words == when_words(schedule(when={"calendar": {"cron": "0 9 * * mon-fri"}}).when)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"target": {"all": True}}, "every PC"),
        ({"target": {"groups": ["office"]}}, "group office"),
        ({"target": {"groups": ["a", "b", "c", "d"]}}, "groups a, b, c and 1 more"),
        ({"target": {"pcs": ["pc-1"]}}, "pc-1"),
        ({"target": {"groups": ["a"], "pcs": ["p", "q"]}}, "group a and 2 PCs"),
        ({"rollout": {"waves": [{"group": "canary", "delay": "0s"}]}}, "waves canary"),
        ({}, "nobody"),
    ],
)
def test_the_target_is_named(keys: dict[str, object], words: str) -> None:
    found = schedule(**keys)

    assert target_words(found.target, found.rollout) == words


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "the server's zone"),
        ({"runs_on": "agent"}, "each PC's own zone"),
        ({"tz": "utc"}, "UTC"),
        ({"tz": "Asia/Tokyo"}, "Asia/Tokyo"),
    ],
)
def test_the_zone_is_named(keys: dict[str, object], words: str) -> None:
    assert zone_words(schedule(**keys)) == words


@pytest.mark.parametrize(
    ("version", "following"),
    [("1.2.0", "1.2.1"), ("2026.09", "2026.10"), ("v9", "v10"), ("1.0-beta", "1.1-beta"),
     ("stable", "stable.1"), ("", "1")],
)  # fmt: skip
def test_the_last_number_of_a_version_is_raised(version: str, following: str) -> None:
    assert bumped(version) == following
