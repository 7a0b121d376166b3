"""Who this agent is to its server: ids, the pinned key, the credential."""

import binascii
import re
from base64 import b64decode, b64encode
from dataclasses import dataclass, replace
from pathlib import Path

from fleet.agent import fields, state
from fleet.agent.checks import Pinned
from fleet.agent.commands import read_id
from fleet.agent.ed25519 import BadKeyError, require_key
from scheduler.rules.strict_json import SAFE_INTEGER

FILE = "identity.json"
SESSION_FILE = "session.json"


@dataclass(frozen=True, slots=True)
class Identity:
    """What enrolment gave. `older_credential` stays until the newer one has been used."""

    server: str
    name: str
    agent_id: str
    credential: str
    server_id: str
    server_epoch: int
    server_key: bytes
    older_credential: str | None = None

    @property
    def pinned(self) -> Pinned:
        """What a command must match."""
        return Pinned(self.agent_id, self.server_id, self.server_epoch, self.server_key)


class IdentityFile:
    """The identity and the exchange's running number, on disk before they are used."""

    def __init__(self, folder: Path, identity: Identity) -> None:
        self._folder = folder
        self.current = identity
        stored = state.read_json(folder / SESSION_FILE) or {"seq": 0}
        self._seq = _whole(stored, "seq")

    def next_seq(self) -> int:
        """A number that no exchange of this agent has had; OSError when it cannot be kept."""
        state.write_json(self._folder / SESSION_FILE, {"seq": self._seq + 1})
        self._seq += 1
        return self._seq

    def adopt(self, credential: str) -> None:
        """Use a new credential from now on, and keep the old one until it has worked.

        Raises OSError when it cannot be kept; then the old one stays.
        """
        older = self.current.older_credential or self.current.credential
        self._save(replace(self.current, credential=credential, older_credential=older))

    def confirm(self) -> None:
        """The server took the credential: an older one is void."""
        if self.current.older_credential is not None:
            self._save(replace(self.current, older_credential=None))

    def fall_back(self) -> bool:
        """The server refused the credential: go back to the older one; False without one."""
        older = self.current.older_credential
        if older is None:
            return False
        self._save(replace(self.current, credential=older, older_credential=None))
        return True

    def raise_epoch(self, server_epoch: int) -> None:
        """A signed command was of a later epoch: what is older is refused from now on."""
        if server_epoch > self.current.server_epoch:
            self._save(replace(self.current, server_epoch=server_epoch))

    def _save(self, identity: Identity) -> None:
        save(self._folder, identity)
        self.current = identity


def load(folder: Path) -> Identity | None:
    """The stored identity, None before enrolment; StateError when it is damaged."""
    stored = state.read_json(folder / FILE)
    if stored is None:
        return None
    try:
        identity = read_identity(
            stored, server=fields.text(stored, "server"), name=fields.text(stored, "name")
        )
        older = fields.optional_text(stored, "older_credential")
    except fields.FieldError as error:
        raise state.StateError(f"{folder / FILE} is damaged: {error}; enrol again") from error
    return replace(identity, older_credential=older)


def save(folder: Path, identity: Identity) -> None:
    """Store the identity; raises OSError when the disk refuses."""
    stored = {
        "server": identity.server,
        "name": identity.name,
        "agent_id": identity.agent_id,
        "credential": identity.credential,
        "older_credential": identity.older_credential,
        "server_id": identity.server_id,
        "server_epoch": identity.server_epoch,
        "server_key": b64encode(identity.server_key).decode(),
    }
    state.write_json(folder / FILE, stored)


def read_identity(source: fields.Object, *, server: str, name: str) -> Identity:
    """The identity in the server's answer to an enrolment, or in the file.

    FieldError names what is wrong; a key that could be forged for counts as wrong.
    """
    try:
        key = require_key(b64decode(fields.text(source, "server_key"), validate=True))
    except (binascii.Error, BadKeyError) as error:
        raise fields.FieldError(f"server_key: {error}") from error
    return Identity(
        server=server,
        name=name,
        agent_id=read_id(source, "agent_id"),
        credential=_credential(source),
        server_id=fields.text(source, "server_id"),
        server_epoch=_whole(source, "server_epoch"),
        server_key=key,
    )


def _credential(source: fields.Object) -> str:
    """It becomes a header line, so nothing but its alphabet may be in it."""
    text = fields.text(source, "credential")
    if not re.fullmatch(r"kag1_[A-Za-z0-9_-]{1,200}", text):
        raise fields.FieldError("credential: it does not look like one")
    return text


def _whole(source: fields.Object, key: str) -> int:
    return fields.whole(source, key, least=0, most=SAFE_INTEGER)
