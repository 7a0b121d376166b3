"""Private files: modes, replacement, damage, and one agent at a time."""

import os
import stat
from pathlib import Path

import pytest

from fleet.agent import state


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_folder_is_private(tmp_path: Path) -> None:
    assert mode(state.open_folder(tmp_path / "deep" / "state")) == 0o700


@pytest.mark.parametrize("bits", [0o750, 0o705, 0o701, 0o777])
def test_a_folder_that_others_may_enter_is_refused_and_left_as_it_is(
    tmp_path: Path, bits: int
) -> None:
    tmp_path.chmod(bits)
    with pytest.raises(state.StateError, match="chmod 700"):
        state.open_folder(tmp_path)
    assert mode(tmp_path) == bits


@pytest.mark.parametrize("bits", [0o640, 0o604, 0o622])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, bits: int) -> None:
    path = tmp_path / "identity.json"
    state.write_private(path, b"{}")
    path.chmod(bits)
    with pytest.raises(state.StateError, match="chmod 600"):
        state.read_private(path)


def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    path = tmp_path / "identity.json"
    state.write_private(path, b"{}")
    os.chown(path, 65534, 65534)
    with pytest.raises(state.StateError, match="another user"):
        state.read_private(path)


def test_a_written_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        state.write_private(tmp_path / "f", b"x")
    finally:
        os.umask(before)
    assert mode(tmp_path / "f") == 0o600


def test_a_missing_file_is_none(tmp_path: Path) -> None:
    assert state.read_private(tmp_path / "none") is None
    assert state.read_json(tmp_path / "none") is None


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    state.write_private(path, b"old")

    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        state.write_private(path, b"new")
    assert path.read_bytes() == b"old"


def test_a_link_in_the_place_of_the_temporary_file_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    (tmp_path / ".f.tmp").symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        state.write_private(tmp_path / "f", b"new")
    assert target.read_bytes() == b"precious"


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b'{"a":1,"a":2}', b"\xff"])
def test_a_damaged_json_file_is_named(tmp_path: Path, data: bytes) -> None:
    state.write_private(tmp_path / "f.json", data)
    with pytest.raises(state.StateError, match=r"f\.json is damaged"):
        state.read_json(tmp_path / "f.json")


def test_a_file_over_the_limit_is_damaged(tmp_path: Path) -> None:
    state.write_private(tmp_path / "f", b"12345")
    with pytest.raises(state.StateError, match="more than 4 bytes"):
        state.read_private(tmp_path / "f", most=4)
    assert state.read_private(tmp_path / "f", most=5) == b"12345"


def test_a_second_agent_in_the_folder_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    lock = state.lock_folder(tmp_path)
    with pytest.raises(state.StateError, match="already running"):
        state.lock_folder(tmp_path)
    lock.close()
    state.lock_folder(tmp_path).close()
