"""A PC becomes an agent: once, however often the answer is lost on the way."""

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from fleet.agent import facts, fields, identity, state
from fleet.agent.identity import Identity
from fleet.agent.journal import Journal
from fleet.agent.transport import Reply, Transport, UnreachableError
from scheduler.rules import strict_json

PATH = "/api/agent/v1/enrol"
JOURNAL_FILE = "journal"
PROTOCOL = 1
_FILE = "enrolment.json"
_CREATED, _TOO_MANY, _SERVER_ERROR = 201, 429, 500


class RefusedError(Exception):
    """The server does not take this PC; asking again with the same token changes nothing."""


@dataclass(frozen=True, slots=True)
class Request:
    """An enrolment that has been begun."""

    server: str
    token: str
    name: str
    nonce: str


def begin(folder: Path, *, server: str, token: str | None, name: str) -> Request | None:
    """Return the enrolment to go on with, saved before anything is sent; None without a token.

    The nonce is what makes a repeated request the same one for the server, so it is made once per
    token and outlives a crash.
    """
    stored = state.read_json(folder / _FILE)
    if stored is not None and token in {None, stored.get("token")}:
        try:
            kept = {key: fields.text(stored, key) for key in ("token", "name", "nonce")}
        except fields.FieldError as error:
            raise state.StateError(f"{folder / _FILE} is damaged: {error}") from error
        return Request(server, kept["token"], kept["name"], kept["nonce"])
    if token is None:
        return None
    request = Request(server, token, name, nonce=secrets.token_urlsafe(32))
    kept = {"token": request.token, "name": request.name, "nonce": request.nonce}
    state.write_json(folder / _FILE, kept)
    return request


def ask(folder: Path, request: Request, transport: Transport) -> Identity:
    """Ask once and store the identity.

    Raises UnreachableError when it is worth asking again, RefusedError when it is not.
    """
    body = {
        "protocol": PROTOCOL,
        "token": request.token,
        "name": request.name,
        "nonce": request.nonce,
        "fingerprint": facts.fingerprint(),
        "facts": facts.facts(),
    }
    reply = transport.request("POST", PATH, body=json.dumps(body).encode())
    found = _identity(reply, request)
    # Before the identity: an agent with an identity and no journal has lost its memory.
    Journal(folder / JOURNAL_FILE, expected=False).close()
    identity.save(folder, found)
    (folder / _FILE).unlink(missing_ok=True)
    return found


def problem(reply: Reply) -> str:
    """What an answer says is wrong, in one line."""
    try:
        told = strict_json.loads(reply.body, any_text=True)
    except strict_json.StrictJSONError:
        told = {}
    words = [told.get(key) for key in ("title", "detail")] if isinstance(told, dict) else []
    text = ": ".join(word for word in words if isinstance(word, str) and word)
    return f"{reply.status} {text}".strip()[:300]


def _identity(reply: Reply, request: Request) -> Identity:
    if reply.status in {408, _TOO_MANY} or reply.status >= _SERVER_ERROR:
        raise UnreachableError(problem(reply), reply.retry_after_s)
    if reply.status != _CREATED:
        raise RefusedError(f"the server does not enrol this PC: {problem(reply)}")
    try:
        told = strict_json.loads(reply.body)
        if not isinstance(told, dict):
            raise fields.FieldError("the answer is no object")
        return identity.read_identity(told, server=request.server, name=request.name)
    except (strict_json.StrictJSONError, fields.FieldError) as error:
        raise UnreachableError(f"the server's answer cannot be read: {error}") from error
