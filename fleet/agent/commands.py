"""One command as the server signed it."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from fleet.agent import fields

DAY_SECONDS = 86_400
MAX_OUTPUT_BYTES = 1024 * 1024
MAX_RETRIES = 10
_VERSION = 1
_MAX_SEQUENCE = 2**53
_PARAM_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class Outcome(StrEnum):
    """How a command ended, in the words of the exchange."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    KILLED = "killed"
    SKIPPED = "skipped"
    REFUSED = "refused"
    EXPIRED = "expired"
    OUTCOME_UNKNOWN = "outcome_unknown"


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a failed script is tried again, and after how many seconds."""

    times: int = 0
    backoff_s: int = 0


@dataclass(frozen=True, slots=True)
class Script:
    """What runs, and how."""

    shell: str
    text: str
    sha256: str
    timeout_s: int = 60
    run_as: str = "system"
    cwd: str | None = None
    params: dict[str, str] = field(default_factory=dict)
    max_output: int = 256 * 1024


@dataclass(frozen=True, slots=True)
class Command:
    """One script for one PC, with the time in which it may start (all times aware, UTC)."""

    id: str
    agent_id: str
    server_id: str
    server_epoch: int
    seq: int
    job: str
    version: str
    script: Script
    issued_at: datetime
    deadline_at: datetime
    start_after: datetime | None = None
    retry: Retry = Retry()
    override_freeze: bool = False
    # For a fire of the agent's own: what the server needs to make a command of it.
    local: dict[str, object] | None = None


def read_command(source: fields.Object) -> Command:
    """Return the command of a verified payload; FieldError names what is missing or wrong.

    Unknown keys are left alone: what restricts a command comes with a new version number.
    """
    fields.whole(source, "v", least=_VERSION, most=_VERSION)
    return Command(
        id=read_id(source, "cmd_id"),
        agent_id=read_id(source, "agent_id"),
        server_id=fields.text(source, "server_id"),
        server_epoch=fields.whole(source, "server_epoch", least=0, most=_MAX_SEQUENCE),
        seq=fields.whole(source, "seq", least=0, most=_MAX_SEQUENCE),
        job=fields.text(source, "job"),
        version=fields.text(source, "version"),
        script=_read_script(source),
        issued_at=fields.moment(source, "issued_at"),
        deadline_at=fields.moment(source, "deadline_at"),
        start_after=fields.optional_moment(source, "start_after"),
        retry=_read_retry(source),
        override_freeze=fields.flag(source, "override_freeze"),
    )


def read_id(source: fields.Object, key: str) -> str:
    """The uuid under `key` in its usual spelling."""
    written = fields.text(source, key)
    try:
        return str(UUID(written))
    except ValueError as error:
        raise fields.FieldError(f"{key}: {written[:40]!r} is no uuid") from error


def _read_script(source: fields.Object) -> Script:
    return Script(
        shell=fields.text(source, "shell"),
        text=fields.text(source, "script"),
        sha256=fields.text(source, "script_sha256"),
        timeout_s=max(1, fields.whole(source, "timeout_s", least=0, most=DAY_SECONDS)),
        run_as=fields.text(source, "run_as"),
        cwd=fields.optional_text(source, "cwd"),
        params=_read_params(fields.child(source, "params")),
        max_output=fields.whole(source, "max_output", least=0, most=MAX_OUTPUT_BYTES),
    )


def _read_params(params: fields.Object) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in params.items():
        if not _PARAM_NAME.fullmatch(name):
            raise fields.FieldError(f"params: {name[:70]!r} is no name of a variable")
        if not isinstance(value, str | int | float):
            raise fields.FieldError(f"params.{name}: a text, number or truth value is needed")
        found[name.upper()] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _read_retry(source: fields.Object) -> Retry:
    if source.get("retry") is None:
        return Retry()
    retry = fields.child(source, "retry")
    try:
        return Retry(
            times=fields.whole(retry, "max", least=0, most=MAX_RETRIES),
            backoff_s=fields.whole(retry, "backoff_s", least=0, most=DAY_SECONDS),
        )
    except fields.FieldError as error:
        raise fields.FieldError(f"retry.{error}") from error
