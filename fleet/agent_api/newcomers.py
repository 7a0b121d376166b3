"""Reads what a PC sends to enrol; every mistake is named at its field."""

import re
from collections.abc import Mapping
from uuid import UUID

from rest_framework.exceptions import ValidationError

from fleet.operations.enrolment import Newcomer
from fleet.rules.facts import read_facts
from fleet.rules.names import BadNameError, parse_pc
from fleet.rules.protocols import problem_of_protocol
from scheduler.api.strict import unknown_key

_KEYS = {"protocol", "token", "name", "nonce", "fingerprint", "facts"}
_NONCE = re.compile(r"[A-Za-z0-9_-]{43}")
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
# Windows opens a device where a file is called so.
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)


def read_newcomer(data: object, *, address: str) -> Newcomer:
    """Return the newcomer that a body describes; raise ValidationError."""
    if not isinstance(data, Mapping):
        raise ValidationError("an enrolment is a JSON object")
    problems = {str(key)[:100]: unknown_key(str(key), _KEYS) for key in data if key not in _KEYS}
    problems["protocol"] = problem_of_protocol(data.get("protocol"))
    problems["token"] = "" if isinstance(data.get("token"), str) else "must be a text"
    problems["name"] = _problem_of_name(data.get("name"))
    problems["nonce"] = _problem_of(_NONCE, data.get("nonce"), "must be 43 base64url characters")
    problems["fingerprint"] = _problem_of(
        _FINGERPRINT, data.get("fingerprint"), "must be 64 hexadecimal digits"
    )
    found = {key: [problem] for key, problem in problems.items() if problem}
    if found:
        raise ValidationError(found)
    return Newcomer(
        token=data["token"],
        name=data["name"],
        nonce=data["nonce"],
        fingerprint=data["fingerprint"],
        facts=read_facts(data.get("facts")),
        address=address,
    )


def _problem_of(pattern: re.Pattern[str], value: object, problem: str) -> str:
    return "" if isinstance(value, str) and pattern.fullmatch(value) else problem


def _problem_of_name(value: object) -> str:
    if not isinstance(value, str):
        return "must be a text"
    try:
        name = parse_pc(value)
    except BadNameError as error:
        return f"{error}; start the agent with --name"
    if _DEVICE.fullmatch(name):
        return "is the name of a device on Windows; start the agent with --name"
    if _is_uuid(name):
        return "looks like a uuid, by which PCs are found as well; start the agent with --name"
    return ""


def _is_uuid(name: str) -> bool:
    try:
        UUID(name)
    except ValueError:
        return False
    return True
