"""The schedules that this PC fires itself, as the server signed them, and all of them or none.

Kept on disk as they came and verified again at each start, so that a PC that boots without a
network goes on by what the server last said.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from fleet.agent import envelope, fields, state
from fleet.agent.checks import Pinned
from fleet.agent.commands import read_id
from fleet.rules.manifest import (
    JobManifest,
    ManifestError,
    ScheduleManifest,
    execute_fingerprint,
    parse_job,
    parse_schedule,
)
from scheduler.rules import strict_json

logger = logging.getLogger(__name__)

FILE = "schedules.json"
_VERSION = 1
_MOST_SCHEDULES = 1000


class BundleError(ValueError):
    """The bundle is not whole, not of this server or older than what is here."""


@dataclass(frozen=True, slots=True)
class LocalSchedule:
    """One schedule with its job as it stands; `job` None = there is none that may run."""

    manifest: ScheduleManifest
    job: JobManifest | None
    is_revoked: bool = False

    @property
    def key(self) -> str:
        """Under which its claim is kept: another job under the same schedule begins anew."""
        return f"{self.manifest.id}::{self.manifest.job_id}"

    @property
    def execute_sha256(self) -> str:
        """What the job runs, as the server counts revisions."""
        return execute_fingerprint(self.job) if self.job else ""


@dataclass(frozen=True, slots=True)
class Bundle:
    """What the server last said; without an etag it has said nothing yet."""

    etag: str = ""
    server_epoch: int = 0
    issued_at: datetime | None = None
    schedules: tuple[LocalSchedule, ...] = ()


@dataclass(frozen=True, slots=True)
class _Part:
    """One verified envelope of a bundle."""

    etag: str
    server_epoch: int
    issued_at: datetime
    index: int
    count: int
    schedule: object
    job: object
    is_revoked: bool


def read_bundle(values: Sequence[object], *, pinned: Pinned) -> Bundle:
    """The bundle of a list of envelopes; BundleError unless every part of it is there and right.

    A schedule whose manifest this agent cannot read does not fire, and does not stop the others.
    """
    parts = [_read_part(value, pinned) for value in values[: _MOST_SCHEDULES + 1]]
    if not parts:
        raise BundleError("a bundle has one part at least")
    first = parts[0]
    if {part.index for part in parts} != set(range(first.count)) or len(parts) != first.count:
        raise BundleError("parts of the bundle are missing")
    heads = {(part.etag, part.server_epoch, part.issued_at, part.count) for part in parts}
    if len(heads) != 1:
        raise BundleError("its parts belong to several bundles")
    found = (_schedule(part) for part in parts if part.schedule is not None)
    schedules = tuple(schedule for schedule in found if schedule is not None)
    return Bundle(first.etag, first.server_epoch, first.issued_at, schedules)


class BundleFile:
    """The bundle on disk."""

    def __init__(self, folder: Path, *, pinned: Pinned) -> None:
        """Read it; one that cannot be read counts as none, so that the server sends it anew."""
        self._path = folder / FILE
        self.current = Bundle()
        try:
            stored = state.read_json(self._path)
            if stored is not None:
                self.current = read_bundle(fields.items(stored, "parts"), pinned=pinned)
        except (state.StateError, fields.FieldError, BundleError) as error:
            logger.error("the stored schedules cannot be used: %s", error)

    def replace(self, values: list[object], *, pinned: Pinned) -> Bundle:
        """Take a new bundle whole; raises BundleError or OSError, then the old one stays."""
        bundle, now = read_bundle(values, pinned=pinned), self.current
        if _age(bundle) < _age(now):
            raise BundleError("it is older than the schedules that are here")
        state.write_json(self._path, {"parts": values})
        self.current = bundle
        return bundle


def _age(bundle: Bundle) -> tuple[int, float]:
    issued = bundle.issued_at.timestamp() if bundle.issued_at else 0.0
    return (bundle.server_epoch, issued)


def _read_part(value: object, pinned: Pinned) -> _Part:
    try:
        payload = envelope.open_envelope(
            envelope.read_envelope(value),
            expected_type=envelope.SCHEDULES_TYPE,
            key=pinned.key,
        )
        told = strict_json.loads(payload, max_bytes=envelope.MAX_PAYLOAD_BYTES)
        if not isinstance(told, dict):
            raise fields.FieldError("a part is a JSON object")
        return _checked(told, pinned)
    except (envelope.EnvelopeError, fields.FieldError, strict_json.StrictJSONError) as error:
        raise BundleError(str(error)) from error


def _checked(told: dict[str, object], pinned: Pinned) -> _Part:
    fields.whole(told, "v", least=_VERSION, most=_VERSION)
    if fields.text(told, "server_id") != pinned.server_id:
        raise fields.FieldError("server_id: it was signed as another server")
    if read_id(told, "agent_id") != pinned.agent_id:
        raise fields.FieldError("agent_id: it is for another agent")
    epoch = fields.whole(told, "server_epoch", least=0, most=strict_json.SAFE_INTEGER)
    if epoch < pinned.server_epoch:
        raise fields.FieldError("server_epoch: it is older than the server's last restore")
    return _Part(
        etag=fields.text(told, "etag"),
        server_epoch=epoch,
        issued_at=fields.moment(told, "issued_at"),
        index=fields.whole(told, "index", least=0, most=_MOST_SCHEDULES - 1),
        count=fields.whole(told, "count", least=1, most=_MOST_SCHEDULES),
        schedule=told.get("schedule"),
        job=told.get("job"),
        is_revoked=fields.flag(told, "revoked"),
    )


def _schedule(part: _Part) -> LocalSchedule | None:
    try:
        manifest = parse_schedule(part.schedule)
        job = None if part.job is None else parse_job(part.job)
    except ManifestError as error:
        logger.error("a schedule cannot be read and does not fire: %s", error)
        return None
    return LocalSchedule(manifest, job, part.is_revoked)
