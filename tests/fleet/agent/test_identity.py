"""Who the agent is: stored privately, read strictly, and never locked out by a new credential."""

import json
from base64 import b64encode
from pathlib import Path

import pytest

from fleet.agent import identity, state
from fleet.agent.fields import FieldError
from fleet.agent.identity import Identity, IdentityFile, read_identity
from tests.fleet.agent.make import AGENT_ID, PINNED, PUBLIC_KEY, SERVER_ID

OLD, NEW = f"kag1_{AGENT_ID}_{'o' * 43}_00000000", f"kag1_{AGENT_ID}_{'n' * 43}_00000000"


def answer(**fields: object) -> dict[str, object]:
    return {
        "agent_id": AGENT_ID,
        "credential": OLD,
        "server_id": SERVER_ID,
        "server_key": b64encode(PUBLIC_KEY).decode(),
        "server_epoch": 1,
    } | fields


def given(**fields: object) -> Identity:
    return read_identity(answer(**fields), server="https://kanade.example.org", name="pc-1")


def stored(folder: Path) -> IdentityFile:
    identity.save(folder, given())
    return IdentityFile(folder, given())


def test_an_identity_is_read_back_as_it_was_saved(tmp_path: Path) -> None:
    identity.save(tmp_path, given())
    assert identity.load(tmp_path) == given()
    assert given().pinned == PINNED


def test_before_enrolment_there_is_none(tmp_path: Path) -> None:
    assert identity.load(tmp_path) is None


WRONG: list[tuple[str, object]] = [
    ("agent_id", "pc-1"),
    ("agent_id", None),
    ("credential", "kap1_x"),
    ("credential", "kag1_x\r\nHost: evil"),
    ("credential", None),
    ("server_id", 5),
    ("server_epoch", -1),
    ("server_key", "!"),
    ("server_key", b64encode(b"short").decode()),
    ("server_key", b64encode(bytes([1]) + bytes(31)).decode()),
]


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_a_wrong_field_is_refused_by_its_name(field: str, value: object) -> None:
    with pytest.raises(FieldError, match=f"^{field}"):
        given(**{field: value})


def test_a_damaged_identity_is_named_and_not_replaced(tmp_path: Path) -> None:
    state.write_json(tmp_path / "identity.json", answer(server_key="?"))
    with pytest.raises(state.StateError, match=r"damaged.*enrol again"):
        identity.load(tmp_path)
    assert json.loads((tmp_path / "identity.json").read_text())["server_key"] == "?"


def test_an_identity_that_others_may_read_is_refused(tmp_path: Path) -> None:
    identity.save(tmp_path, given())
    (tmp_path / "identity.json").chmod(0o644)
    with pytest.raises(state.StateError, match="chmod 600"):
        identity.load(tmp_path)


def test_the_running_number_grows_across_starts_and_is_stored_first(tmp_path: Path) -> None:
    first = stored(tmp_path)
    assert [first.next_seq(), first.next_seq()] == [1, 2]
    assert IdentityFile(tmp_path, given()).next_seq() == 3


def test_a_number_that_cannot_be_stored_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = stored(tmp_path)

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(state, "write_private", no_space)
        with pytest.raises(OSError, match="No space"):
            file.next_seq()
    assert file.next_seq() == 1


def test_a_new_credential_is_used_and_the_old_one_kept_until_it_worked(tmp_path: Path) -> None:
    stored(tmp_path).adopt(NEW)
    after_crash = identity.load(tmp_path)
    assert after_crash is not None
    assert (after_crash.credential, after_crash.older_credential) == (NEW, OLD)
    IdentityFile(tmp_path, after_crash).confirm()
    confirmed = identity.load(tmp_path)
    assert confirmed is not None
    assert (confirmed.credential, confirmed.older_credential) == (NEW, None)


def test_when_the_new_credential_is_refused_the_old_one_is_back(tmp_path: Path) -> None:
    file = stored(tmp_path)
    file.adopt(NEW)
    assert file.fall_back() is True
    assert identity.load(tmp_path) == given()
    assert file.fall_back() is False


def test_a_credential_that_cannot_be_stored_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = stored(tmp_path)

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(state, "write_private", no_space)
    with pytest.raises(OSError, match="No space"):
        file.adopt(NEW)
    assert file.current.credential == OLD


def test_the_servers_epoch_only_rises(tmp_path: Path) -> None:
    file = stored(tmp_path)
    file.raise_epoch(3)
    file.raise_epoch(2)
    again = identity.load(tmp_path)
    assert again is not None
    assert again.pinned.server_epoch == 3
