"""Write down who did what, in the transaction of the act."""

from collections.abc import Mapping
from datetime import datetime

from scheduler.models import AuditEntry
from scheduler.rules.actors import Actor
from scheduler.rules.texts import clean_json, clean_text


def record_act(
    actor: Actor,
    action: str,
    *,
    object_kind: str,
    object_id: object,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
    reason: str = "",
    now: datetime,
) -> None:
    """Add an audit entry. Call it inside the transaction that changes the object."""
    AuditEntry.objects.create(
        at=now,
        actor_kind=actor.kind,
        actor_name=clean_text(actor.name, most=200),
        user_id=actor.user_id,
        address=clean_text(actor.address, most=64),
        action=action,
        object_kind=object_kind,
        object_id=clean_text(str(object_id), most=200),
        before=None if before is None else clean_json(dict(before)),
        after=None if after is None else clean_json(dict(after)),
        reason=clean_text(reason),
    )
