"""The schedules that agents fire themselves: which of them a PC should have, signed for it."""

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from fleet.agent.envelope import MAX_PAYLOAD_BYTES, SCHEDULES_TYPE
from fleet.flow.manifests import schedule_manifest
from fleet.flow.signing import Signer, server_signer
from fleet.models import Agent, Schedule
from fleet.rules.manifest import ManifestError

logger = logging.getLogger(__name__)

VERSION = 1
# Beside it the reply carries commands; agents read four mebibytes.
MOST_BYTES = 3 * 1024 * 1024
ROOM_FOR_FRAME = 1024


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a PC should have: its etag, and the envelopes (JSON-like) where it has another one."""

    etag: str
    envelopes: list[dict[str, object]] | None = None
    size: int = 0


NO_BUNDLE = Bundle("")


def bundle_for(agent_id: int, *, has: str, now: datetime) -> Bundle:
    """Return the bundle of an agent that has the one of the etag `has` (blank: none).

    Three queries, whatever the number of schedules. An agent that never had one and is meant by
    none gets none.
    """
    agent = (
        Agent.objects.prefetch_related("groups").only("pk", "name", "uuid_text").get(pk=agent_id)
    )
    schedules = _meant(agent)
    if not schedules and not has:
        return NO_BUNDLE
    signer = server_signer()
    etag = _etag(schedules, signer)
    if etag == has:
        return Bundle(etag)
    envelopes = _envelopes(agent, schedules, signer, etag, now)
    size = len(json.dumps(envelopes))
    if size > MOST_BYTES:
        # All of it or none: it keeps what it has.
        logger.error("the schedules of a PC do not fit into a reply", extra={"agent": agent.name})
        return Bundle(has)
    return Bundle(etag, envelopes, size)


def _meant(agent: Agent) -> list[Schedule]:
    """The enabled schedules of agents whose target includes this one, in the order of their ids."""
    groups = [group.slug for group in agent.groups.all()]
    found = Schedule.objects.filter(enabled=True, runs_on_agent=True)
    return [
        schedule
        for schedule in found.select_related("job__current").order_by("pk")
        if _means(schedule, agent, groups)
    ]


def _means(schedule: Schedule, agent: Agent, groups: Sequence[str]) -> bool:
    try:
        target = schedule_manifest(schedule).target
    except ManifestError:
        logger.exception("a stored schedule cannot be read", extra={"schedule": schedule.slug})
        return False
    return target.matches(agent.name, groups, uuid=agent.uuid_text)


def _etag(schedules: Sequence[Schedule], signer: Signer) -> str:
    """A name for the content: the same schedules, jobs and server have the same one."""
    said = [str(signer.server_id), signer.epoch, signer.key_id]
    content = [[one.pk, one.fingerprint, _job_sha256(one), _is_revoked(one)] for one in schedules]
    return hashlib.sha256(json.dumps([said, content]).encode()).hexdigest()


def _job_sha256(schedule: Schedule) -> str | None:
    return schedule.job.current.sha256 if schedule.job.current else None


def _is_revoked(schedule: Schedule) -> bool:
    return schedule.job.revoked_at is not None


def _envelopes(
    agent: Agent, schedules: Sequence[Schedule], signer: Signer, etag: str, now: datetime
) -> list[dict[str, object]]:
    frame: dict[str, object] = {
        "v": VERSION,
        "server_id": str(signer.server_id),
        "server_epoch": signer.epoch,
        "agent_id": agent.uuid_text,
        "etag": etag,
        "issued_at": now.isoformat(),
    }
    contents = [content for content in map(_content, schedules) if content is not None]
    parts = contents or [{"schedule": None, "job": None, "revoked": False}]
    return [
        signer.envelope(SCHEDULES_TYPE, {**frame, "index": index, "count": len(parts), **part})
        for index, part in enumerate(parts)
    ]


def _content(schedule: Schedule) -> dict[str, object] | None:
    """What one part says; None for one that no agent would open, so that the others arrive."""
    current = schedule.job.current
    content: dict[str, object] = {
        "schedule": schedule.manifest,
        "job": current.manifest if current else None,
        "revoked": _is_revoked(schedule),
    }
    if len(json.dumps(content)) > MAX_PAYLOAD_BYTES - ROOM_FOR_FRAME:
        logger.error("a schedule is too large for agents", extra={"schedule": schedule.slug})
        return None
    return content
