"""Reads `target` and `rollout`: who, and in which waves."""

import re
from datetime import timedelta

from fleet.rules.names import parse_pc, parse_slug
from fleet.rules.problems import Notes, shown
from fleet.rules.reader import Reader
from fleet.rules.targets import FailureLimit, Rollout, Target, Wave

MAX_GROUPS = 1_000
MAX_PCS = 10_000
MAX_WAVES = 50
MOST_DELAY = timedelta(days=30)
MAX_FAILURES = 100_000
_PERCENT = re.compile(r"(100|[0-9]{1,2})%")


def read_target(reader: Reader, key: str = "target") -> Target:
    """Who is meant; nobody where the key is absent."""
    part = reader.child(key, "all, groups, pcs")
    target = Target(
        part.flag("all", default=False),
        part.texts("groups", parse_slug, most=MAX_GROUPS),
        part.texts("pcs", parse_pc, most=MAX_PCS),
    )
    part.finish()
    return target


def parse_target(value: object) -> Target:
    """The target of a run by hand; ManifestError names everything wrong, nobody included."""
    notes = Notes()
    reader = Reader({"target": value}, "", notes)
    target = read_target(reader)
    if not target.is_specified and not notes.problems:
        notes.problem("target", "names nobody; write all, groups or pcs")
    notes.raise_problems()
    return target


def read_rollout(reader: Reader) -> Rollout | None:
    """The waves; None where the key is absent."""
    if not reader.has("rollout"):
        return None
    part = reader.child("rollout", "waves")
    if part.raw("strategy") == "wave":
        part.document["strategy"] = "wave"
    elif part.has("strategy"):
        part.problem("strategy", 'write "wave" or remove the key')
    waves = tuple(
        _read_wave(part, path, item) for path, item in part.items("waves", most=MAX_WAVES)
    )
    part.document["waves"] = [wave.document for wave, _ in waves]
    if not waves:
        part.problem("waves", "must have at least one wave, for example {group: canary, delay: 0s}")
    limit = _read_max_failures(part)
    part.finish()
    return Rollout(tuple(wave for _, wave in waves), limit)


def _read_wave(part: Reader, path: str, item: object) -> tuple[Reader, Wave]:
    reader = Reader.of(item, path, part.notes, "group, delay")
    if not reader.has("group"):
        reader.missing("group", "group: canary")
    group = reader.parsed("group", parse_slug) or ""
    delay = reader.duration("delay", least=timedelta(), most=MOST_DELAY)
    if not reader.has("delay"):
        reader.missing("delay", "delay: 1h (from the start of the execution)")
    reader.finish()
    return reader, Wave(group, delay or timedelta())


def _read_max_failures(part: Reader) -> FailureLimit | None:
    """A count, or a percentage of the wave."""
    value = part.raw("max_failures")
    if isinstance(value, int) and not isinstance(value, bool):
        count = part.integer("max_failures", least=0, most=MAX_FAILURES)
        return None if count is None else FailureLimit(count)
    return part.parsed("max_failures", _parse_percent)


def _parse_percent(text: str) -> FailureLimit:
    found = _PERCENT.fullmatch(text)
    if not found:
        raise ValueError(f'{shown(text)}: write a number such as 3, or "10%" of a wave')
    return FailureLimit(int(found[1]), percent=True)
