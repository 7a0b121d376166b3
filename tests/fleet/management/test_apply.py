"""`apply` and `export`: files in, a plan out, and back again."""

from pathlib import Path

import pytest

from fleet.management.files import NoFilesError, files_of
from fleet.models import Job, Schedule
from scheduler.models import AuditEntry
from tests.fleet.management.running import run

pytestmark = pytest.mark.django_db
JOB = """id: inventory
version: "1"
execute: { shell: sh, script: uname -a, timeout: 30s }
"""
SCHEDULE = """id: inventory-6h
when: { per_pc: { every: 6h } }
job_id: inventory
target: { all: true }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a job and a schedule in files of their own, and something else."""
    (tmp_path / "a-schedule.yml").write_text(SCHEDULE)
    (tmp_path / "b-job.yaml").write_text(JOB)
    (tmp_path / "notes.txt").write_text("no manifest")
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "c.yaml").write_text(JOB.replace("inventory", "deep"))
    return tmp_path


def test_a_folder_is_applied_and_each_document_told(folder: Path) -> None:
    said = run("apply", str(folder))
    assert said.out == [
        "create    job inventory",
        "create    schedule inventory-6h",
        "2 create, 0 update, 0 unchanged, 0 delete, 0 bad",
    ]
    assert (said.err, said.failure) == ([], None)
    assert Schedule.objects.get().job == Job.objects.get()
    assert {row.actor_kind for row in AuditEntry.objects.all()} == {"command"}


def test_a_second_time_everything_is_unchanged(folder: Path) -> None:
    run("apply", str(folder))
    assert run("apply", str(folder)).out[-1] == "0 create, 0 update, 2 unchanged, 0 delete, 0 bad"


def test_a_dry_run_shows_the_changed_fields_and_changes_nothing(folder: Path) -> None:
    run("apply", str(folder))
    (folder / "a-schedule.yml").write_text(SCHEDULE.replace("6h }", "12h }"))
    said = run("apply", "--dry-run", str(folder))
    assert said.out == [
        "unchanged job inventory",
        "update    schedule inventory-6h",
        '          when.per_pc.every: "6h" -> "12h"',
        "0 create, 1 update, 1 unchanged, 0 delete, 0 bad; nothing was changed",
    ]
    assert Schedule.objects.get().manifest["when"] == {"per_pc": {"every": "6h"}}


def test_a_bad_document_fails_the_command_and_the_good_ones_are_applied(folder: Path) -> None:
    (folder / "a-schedule.yml").write_text(SCHEDULE.replace("every", "evry"))
    said = run("apply", str(folder))
    place = f"{folder}/a-schedule.yml:2"
    assert said.err == [
        f"{place}: when.per_pc.every: is required, for example every: 6h",
        f'{place}: when.per_pc.evry: unknown key; did you mean "every"?',
    ]
    assert said.failure == "1 of 2 documents are bad"
    assert said.out[0:2] == ["create    job inventory", "bad       schedule inventory-6h"]
    assert Job.objects.exists()


def test_atomic_keeps_the_good_ones_back(folder: Path) -> None:
    (folder / "z.yaml").write_text("id: x\n")
    said = run("apply", "--atomic", str(folder))
    assert said.failure == "1 of 3 documents are bad"
    assert said.out[-1].endswith("; nothing was changed")
    assert not Job.objects.exists()


def test_pruning_follows_the_set(folder: Path) -> None:
    run("apply", "--set", "site", str(folder))
    said = run("apply", "--set", "site", "--prune", str(folder / "b-job.yaml"))
    assert said.out[1] == "delete    schedule inventory-6h"
    assert not Schedule.objects.exists()


def test_pruning_without_a_set_is_refused(folder: Path) -> None:
    assert run("apply", "--prune", str(folder)).failure == "set: name the set that is pruned"
    assert not Job.objects.exists()


def test_json_is_read_with_its_escapes(tmp_path: Path) -> None:
    text = (
        '{"id": "emoji", "version": "1", '
        '"execute": {"shell": "sh", "script": "echo \\ud83d\\ude00", "timeout": "30s"}}'
    )
    (tmp_path / "a.json").write_text(text)
    run("apply", str(tmp_path))
    [revision] = Job.objects.get().revisions.all()
    assert revision.manifest["execute"]["script"] == "echo \U0001f600"


def scripted(folder: Path, name: str) -> str | None:
    (folder / "job.yaml").write_text(JOB.replace("script: uname -a", f"script_file: {name}"))
    said = run("apply", str(folder / "job.yaml"))
    return said.err[0].split("execute.script_file: ")[1] if said.failure else None


def test_a_script_file_is_put_in_place(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "a.sh").write_bytes(b"\xef\xbb\xbfecho a\r\necho b\r\n")
    assert scripted(tmp_path, "scripts/a.sh") is None
    assert Job.objects.get().latest is not None
    [revision] = Job.objects.get().revisions.all()
    assert revision.manifest["execute"] == {
        "shell": "sh",
        "script": "echo a\necho b\n",
        "timeout": "30s",
    }


def test_a_script_from_outside_the_folder_is_not_brought_to_pcs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "link").symlink_to(secret)
    for name in (str(secret), "../secret", "link"):
        assert scripted(folder, name) == f"'{name}' is outside the folder of the manifest"
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "'a.sh' cannot be read: No such file or directory"),
        (b"\xff", "'a.sh' is not UTF-8; save it as UTF-8"),
        (b"x" * (128 * 1024 + 1), "'a.sh' has more than 131072 bytes"),
    ],
)
def test_a_script_that_cannot_be_read_is_a_problem_of_its_document(
    tmp_path: Path, content: bytes | None, problem: str
) -> None:
    if content is not None:
        (tmp_path / "a.sh").write_bytes(content)
    assert scripted(tmp_path, "a.sh") == problem


def test_files_folders_and_globs_are_sorted_and_each_there_once(folder: Path) -> None:
    found = files_of([str(folder), f"{folder}/b*", f"{folder}/**/*.yaml"])
    assert [str(file.relative_to(folder)) for file in found] == [
        "a-schedule.yml",
        "b-job.yaml",
        "deeper/c.yaml",
    ]


def test_a_path_that_means_nothing_is_an_error(folder: Path) -> None:
    with pytest.raises(NoFilesError):
        files_of([str(folder), f"{folder}/*.toml"])
    said = run("apply", f"{folder}/nope.yaml")
    assert said.failure == f"{folder}/nope.yaml: no file ending in .yaml, .yml, .json is there"


def test_a_file_that_is_named_is_read_whatever_its_ending(folder: Path) -> None:
    (folder / "job.manifest").write_text(JOB)
    assert run("apply", str(folder / "job.manifest")).failure is None


def test_a_file_that_is_too_large_is_a_bad_document(folder: Path) -> None:
    (folder / "big.yaml").write_text("#" * (1024 * 1024 + 1))
    said = run("apply", str(folder))
    assert said.failure == "1 of 3 documents are bad"
    assert said.err == [f"{folder}/big.yaml:1: has 1048577 bytes; at most 1048576 are read"]


def test_what_is_exported_is_applied_without_a_difference(folder: Path, tmp_path: Path) -> None:
    run("apply", str(folder))
    copy = tmp_path / "copy.yaml"
    copy.write_text("\n".join(run("export").out))
    assert run("apply", str(copy)).out[-1] == "0 create, 0 update, 2 unchanged, 0 delete, 0 bad"


def test_export_takes_a_kind_and_ids(folder: Path) -> None:
    run("apply", str(folder))
    assert run("export", "schedules", "inventory-6h").out == [
        "id: inventory-6h",
        "when:",
        "  per_pc:",
        "    every: 6h",
        "job_id: inventory",
        "target:",
        "  all: true",
    ]
    assert run("export", "freeze").out == ["freeze: 'off'"]
    assert run("export", "jobs", "nope").failure == 'there is no job "nope"'
    assert run("export", "freeze", "x").failure == "there is one freeze, without an id"
