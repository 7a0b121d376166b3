"""Do what a program asks for once, however often it asks: it may not have heard the answer."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from fleet.models import Execution, RequestKey
from fleet.rules.refusals import Conflict

KEPT_FOR = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Done:
    """The execution, and whether an earlier request with the same key had made it."""

    execution: Execution
    repeated: bool


def once(
    key: str,
    request: object,
    *,
    user_id: int,
    now: datetime,
    act: Callable[[], Execution],
) -> Done:
    """Act, unless this person's `key` did within a day; then answer what that made.

    `request` is JSON: what is asked for. Conflict where the key stood for another request. What
    `act` refuses leaves no trace, so that the same key may be tried again.
    """
    digest = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
    with transaction.atomic():
        RequestKey.objects.filter(user=user_id, created_at__lt=now - KEPT_FOR).delete()
        # Of two at once the second waits here until the first is through.
        row, is_new = RequestKey.objects.get_or_create(
            user_id=user_id,
            key=key,
            defaults={"request_sha256": digest, "created_at": now},
        )
        if not is_new:
            return Done(_made_by(row, digest), repeated=True)
        execution = act()
        RequestKey.objects.filter(pk=row.pk).update(execution_id=execution.pk)
    return Done(execution, repeated=False)


def _made_by(row: RequestKey, digest: str) -> Execution:
    if row.request_sha256 != digest:
        raise Conflict("this Idempotency-Key stood for another request; use a new one")
    made = row.execution_id
    found = None if made is None else Execution.objects.filter(pk=made).first()
    if found is None:
        raise Conflict("what this Idempotency-Key made is not kept any more; use a new one")
    return found
