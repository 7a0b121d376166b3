"""Freeze the fleet, and thaw it."""

from datetime import datetime
from functools import partial

from django.db import DatabaseError, transaction

from fleet.flow.asking import ask_tick
from fleet.flow.freeze import known_freeze, shut_the_gate
from fleet.flow.manifests import local_zone
from fleet.flow.wakes import wake_everybody
from fleet.models import Freeze
from fleet.operations.inputs import valid
from fleet.rules.manifest import parse_freeze
from fleet.rules.refusals import Conflict
from scheduler.public import Actor, record_act

OFF: dict[str, object] = {"freeze": "off"}
UNREADABLE: dict[str, object] = {"freeze": "unreadable"}


def freeze_document() -> dict[str, object]:
    """The stored freeze as its manifest; as written, whether it can be read or not."""
    row = next(iter(Freeze.objects.stored()), None)
    if row is None or row.is_set is False:
        return dict(OFF)
    written = {"from": row.starts, "until": row.ends, "reason": row.reason}
    inner: dict[str, object] = {key: str(value) for key, value in written.items() if value}
    if row.tz != "local":
        inner["tz"] = str(row.tz)
    return {"freeze": inner}


def set_freeze(document: object, *, actor: Actor, now: datetime) -> Freeze:
    """Freeze from now on, or for the period that the document names; Invalid.

    When it returns, no further command is handed out. `freeze: off` clears it.
    """
    manifest = valid(partial(parse_freeze, local=local_zone()), document)
    if manifest.off:
        return clear_freeze(actor=actor, now=now)
    columns = {
        "is_set": True,
        "starts": manifest.bounds.starts or "",
        "ends": manifest.bounds.ends or "",
        "tz": manifest.tz,
        "reason": manifest.reason,
        "set_by": actor.name,
        "set_at": now,
    }
    return _write(columns, "freeze", reason=manifest.reason, actor=actor, now=now)


def clear_freeze(*, actor: Actor, now: datetime, reason: str = "") -> Freeze:
    """Thaw; no freeze is no error. Conflict where the stored one cannot be read.

    Then nobody knows what was meant: setting a valid freeze comes first.
    """
    state = known_freeze(now)
    if state.unreadable is not None:
        raise Conflict(f"the freeze cannot be read ({state.unreadable}): set a valid one first")
    columns = {"is_set": False, "starts": "", "ends": "", "tz": "local", "reason": ""}
    by = {"set_by": actor.name, "set_at": now}
    return _write(columns | by, "thaw", reason=reason, actor=actor, now=now)


def _write(
    columns: dict[str, object], action: str, *, reason: str, actor: Actor, now: datetime
) -> Freeze:
    with transaction.atomic():
        # Hand-outs under way come to their end first: what comes after them is frozen.
        shut_the_gate()
        before = _document_before()
        # Whatever was there goes, row by row unread: it may be anything.
        Freeze.objects.all().delete()
        row = Freeze.objects.create(pk=1, **columns)
        after = freeze_document()
        if before != after:
            record_act(
                actor,
                action,
                object_kind="freeze",
                object_id="freeze",
                before=before,
                after=after,
                reason=reason,
                now=now,
            )
            wake_everybody()
            ask_tick(now=now)
    return row


def _document_before() -> dict[str, object]:
    try:
        with transaction.atomic():
            rows = Freeze.objects.stored()
            is_clear = len(rows) == 1 and isinstance(rows[0].is_set, bool)
            return freeze_document() if is_clear else dict(UNREADABLE)
    except DatabaseError:
        return dict(UNREADABLE)
