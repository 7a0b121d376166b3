"""How the freeze is answered."""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from fleet.models import Freeze
from fleet.rules.freeze import FreezeState
from scheduler.api.fields import Moment


class FreezeOut(serializers.Serializer[Any]):
    """The freeze as its manifest, and what it means at this moment."""

    freeze = serializers.JSONField(help_text='The manifest, or the word "off".')
    state = serializers.CharField(help_text="In words; begins with frozen or not frozen.")
    frozen = serializers.BooleanField(help_text="Also true where the freeze cannot be read.")
    unreadable = serializers.CharField(allow_null=True)
    starts_at = Moment(allow_null=True)
    until = Moment(allow_null=True)
    set_by = serializers.CharField()
    set_at = Moment(allow_null=True)


def shown_freeze(
    document: Mapping[str, object], state: FreezeState, row: Freeze | None
) -> Mapping[str, Any]:
    """Return the answer; what is stored may be anything, so it is shown as text where it is bad."""
    inner: object = document["freeze"]
    if state.unreadable is not None and isinstance(inner, Mapping):
        inner = {key: str(value) for key, value in inner.items()}
    answer: Mapping[str, Any] = FreezeOut(
        {
            "freeze": inner,
            "state": state.words,
            "frozen": state.frozen,
            "unreadable": state.unreadable,
            "starts_at": state.starts_at,
            "until": state.until,
            "set_by": row.set_by if row else "",
            "set_at": row.set_at if row else None,
        }
    ).data
    return answer
