"""The bundle of local schedules: signed, whole, never older than what is here."""

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fleet.agent import state
from fleet.agent.bundle import Bundle, BundleError, BundleFile, read_bundle
from fleet.agent.envelope import COMMAND_TYPE, SCHEDULES_TYPE
from tests.fleet.agent.locally import job_document, part_payload, parts, schedule_document
from tests.fleet.agent.make import NOW, PINNED, sealed

PAIR = (schedule_document(), job_document())
OTHER = (schedule_document(id="second"), job_document())


def read(*values: object) -> Bundle:
    return read_bundle(values, pinned=PINNED)


def ids(bundle: Bundle) -> list[str]:
    return [schedule.manifest.id for schedule in bundle.schedules]


def test_a_whole_bundle_is_read() -> None:
    bundle = read(*parts(PAIR, OTHER, etag="e7"))
    assert (bundle.etag, ids(bundle)) == ("e7", ["inventory-1h", "second"])
    job = bundle.schedules[0].job
    assert job is not None
    assert (job.id, bundle.schedules[0].key) == ("inventory", "inventory-1h::inventory")


def test_a_bundle_without_schedules_is_one_empty_part() -> None:
    assert read(*parts((None, None))).schedules == ()


def test_a_schedule_whose_job_may_not_run_has_none() -> None:
    assert read(*parts((schedule_document(), None))).schedules[0].job is None


def part(**fields: object) -> dict[str, object]:
    return sealed(part_payload(**fields), kind=SCHEDULES_TYPE)


BROKEN: dict[str, list[object]] = {
    "nothing": [],
    "no envelope": ["x"],
    "a part missing": parts(PAIR, OTHER)[:1],
    "a part twice": [parts(PAIR, OTHER)[0]] * 2,
    "one part too many": [*parts(PAIR), *parts(PAIR)],
    "parts of two bundles": [parts(PAIR, OTHER)[0], parts(PAIR, OTHER, etag="e2")[1]],
    "another key": [
        sealed(
            part_payload(),
            kind=SCHEDULES_TYPE,
            by=Ed25519PrivateKey.from_private_bytes(b"x" * 32),
        )
    ],
    "signed as a command": [sealed(part_payload(), kind=COMMAND_TYPE)],
    "another server": [part(server_id="x")],
    "another agent": [part(agent_id="0190d0a0-0000-7000-8000-00000000dead")],
    "before the last restore": [part(server_epoch=0)],
    "another version": [part(v=2)],
    "no etag": [part(etag=None)],
    "no count": [part(count=0)],
    "not revoked nor not": [part(revoked=None)],
    "no object": [sealed(b"[]", kind=SCHEDULES_TYPE)],
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_bundle_that_is_not_whole_and_right_is_refused(name: str) -> None:
    with pytest.raises(BundleError):
        read(*BROKEN[name])


@pytest.mark.parametrize(
    "pair",
    [
        (schedule_document(when={"per_target": {"every": "1h"}}), job_document()),
        (schedule_document(novelty=1), job_document()),
        (schedule_document(), job_document(version=None)),
        ({}, job_document()),
    ],
)
def test_a_manifest_that_cannot_be_read_does_not_fire_and_does_not_stop_the_others(
    pair: tuple[dict[str, object], dict[str, object]],
) -> None:
    assert ids(read(*parts(pair, OTHER))) == ["second"]


def test_a_bundle_is_there_again_after_a_restart(tmp_path: Path) -> None:
    BundleFile(tmp_path, pinned=PINNED).replace(parts(PAIR), pinned=PINNED)
    assert ids(BundleFile(tmp_path, pinned=PINNED).current) == ["inventory-1h"]


def test_a_partial_bundle_leaves_the_earlier_one(tmp_path: Path) -> None:
    file = BundleFile(tmp_path, pinned=PINNED)
    file.replace(parts(PAIR), pinned=PINNED)
    with pytest.raises(BundleError):
        file.replace(parts(PAIR, OTHER, etag="e2")[:1], pinned=PINNED)
    assert file.current.etag == "e1"
    assert BundleFile(tmp_path, pinned=PINNED).current.etag == "e1"


def test_an_older_bundle_is_a_replay_and_refused(tmp_path: Path) -> None:
    file = BundleFile(tmp_path, pinned=PINNED)
    file.replace(parts(PAIR, etag="new", issued_at=NOW), pinned=PINNED)
    old = parts(OTHER, etag="old", issued_at=NOW - timedelta(seconds=1))
    with pytest.raises(BundleError, match="older than the schedules that are here"):
        file.replace(old, pinned=PINNED)
    assert file.current.etag == "new"


def test_a_bundle_that_cannot_be_stored_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = BundleFile(tmp_path, pinned=PINNED)

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(state, "write_private", no_space)
    with pytest.raises(OSError, match="No space"):
        file.replace(parts(PAIR), pinned=PINNED)
    assert file.current.etag == ""


@pytest.mark.parametrize("data", [b"", b"{}", b'{"parts": [1]}'])
def test_a_damaged_file_counts_as_no_bundle(tmp_path: Path, data: bytes) -> None:
    state.write_private(tmp_path / "schedules.json", data)
    assert BundleFile(tmp_path, pinned=PINNED).current == Bundle()


def test_a_file_that_somebody_changed_counts_as_no_bundle(tmp_path: Path) -> None:
    BundleFile(tmp_path, pinned=PINNED).replace(parts(PAIR), pinned=PINNED)
    path = tmp_path / "schedules.json"
    text = path.read_bytes()
    position = text.index(b'payload"') + 200
    path.write_bytes(text[:position] + b"A" + text[position + 1 :])
    assert BundleFile(tmp_path, pinned=PINNED).current == Bundle()
