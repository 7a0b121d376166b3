"""Who does something by hand."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypedDict, get_args

ActorKind = Literal["user", "token", "command", "agent", "system"]
ACTOR_KINDS: tuple[str, ...] = get_args(ActorKind)


@dataclass(frozen=True, slots=True)
class Actor:
    """The author of an act, as the audit names it. `address` is where it came from."""

    kind: ActorKind
    name: str
    user_id: int | None = None
    address: str = ""


SYSTEM = Actor("system", "kanade")


class By(TypedDict, total=False):
    """Who acts and why; left out, the system does, and now."""

    actor: Actor
    reason: str
    now: datetime | None


@dataclass(frozen=True, slots=True)
class Act:
    """An act: who, why, when."""

    actor: Actor
    reason: str
    now: datetime
