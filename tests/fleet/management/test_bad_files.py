"""Bad input in files: a clear line each with its place, nothing stored, and no fault."""

from pathlib import Path

import pytest

from fleet.models import Group, Job, Schedule
from tests.fleet.management.running import run

pytestmark = pytest.mark.django_db
JOB = "id: j\nversion: '1'\nexecute: {{ shell: sh, script: {script}, timeout: 30s }}\n"
SCHEDULE = "id: s\njob_id: j\ntarget: {{ all: true }}\nwhen: {when}\n{rest}"


def calendar(cron: str) -> str:
    return SCHEDULE.format(when=f"{{ calendar: {{ cron: '{cron}' }} }}", rest="")


def schedule(rest: str) -> str:
    return SCHEDULE.format(when="{ per_pc: { every: 6h } }", rest=rest)


BAD: dict[str, tuple[str, str]] = {
    "never": (calendar("0 0 31 2 *"), "when.calendar.cron"),
    "minute 61": (calendar("61 * * * *"), "when.calendar.cron"),
    "random": (calendar("R * * * *"), "when.calendar.cron"),
    "backwards": (calendar("5-1 * * * *"), "when.calendar.cron"),
    "six fields": (calendar("0 0 12 * * *"), "when.calendar.cron"),
    "unknown key": (
        SCHEDULE.format(when="{ per_pc: { evry: 6h } }", rest=""),
        "when.per_pc.evry",
    ),
    "jitter": (schedule("jitter: 5x\n"), "jitter"),
    "zone": (schedule("tz: Mars/Olympus\n"), "tz"),
    "empty window": (schedule("constraints: { window: '22:00-22:00' }\n"), "constraints.window"),
    "NUL": (JOB.format(script='"echo \\0"'), "execute.script"),
    "control character": (JOB.format(script='"echo \\x07"'), "execute.script"),
    "surrogate": (JOB.format(script='"echo \\ud800"'), "invalid Unicode character"),
    "brackets": ("[" * 100_000, ""),
    "aliases": ("a: &a [x, x]\nb: *a\n", "alias"),
    "two keys": ("id: j\nid: k\n", "id"),
    "a tag": ("id: !!python/object:os.system x\n", ""),
    "not UTF-8": ("id: \udcff\n", "UTF-8"),
    "too large": ("#" * (1024 * 1024 + 1), "1048577 bytes"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_bad_is_named_with_its_place_and_nothing_is_stored(
    name: str, tmp_path: Path
) -> None:
    text, word = BAD[name]
    path = tmp_path / "bad.yaml"
    path.write_bytes(text.encode(errors="surrogateescape"))

    said = run("apply", str(tmp_path))

    assert said.failure == "1 of 1 documents are bad"
    assert said.err
    assert all(line.startswith(str(path)) and len(line) < 600 for line in said.err)
    assert word in "\n".join(said.err)
    assert [model.objects.count() for model in (Job, Schedule, Group)] == [0, 0, 0]
