"""What the server says in one exchange, read as a whole before anything of it is acted on."""

from dataclasses import dataclass
from datetime import datetime

from fleet.agent import fields
from fleet.agent.gate import Freeze, read_freeze
from fleet.agent.pace import DEFAULT_NEXT_S, MOST_NEXT_S
from fleet.agent.transport import MAX_BYTES
from scheduler.rules import strict_json

_MOST_VALUES = 200_000


class AnswerError(ValueError):
    """The answer cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One exchange's answer. The commands and schedules are envelopes, still unopened."""

    server_time: datetime
    epoch: int
    ticket: str
    verdicts: dict[str, str]
    commands: list[object]
    kill: list[str]
    freeze: Freeze
    schedules_etag: str
    schedules: list[object] | None
    credential: str | None
    next_in_s: float


def read_answer(data: bytes) -> Answer:
    """Return the answer; AnswerError when a part that matters is missing or wrong.

    A freeze that cannot be read does not spoil the answer: it is a freeze.
    """
    try:
        told = strict_json.loads(data, max_bytes=MAX_BYTES, max_nodes=_MOST_VALUES)
        if not isinstance(told, dict):
            raise fields.FieldError("the answer is no object")
        return Answer(
            server_time=fields.moment(told, "server_time"),
            epoch=fields.whole(told, "epoch", least=0, most=strict_json.SAFE_INTEGER),
            ticket=fields.optional_text(told, "wait_ticket") or "",
            verdicts=_texts(fields.child(told, "verdicts")),
            commands=fields.items(told, "commands"),
            kill=[str(command) for command in fields.items(told, "kill")],
            freeze=read_freeze(told),
            schedules_etag=fields.optional_text(told, "schedules_etag") or "",
            schedules=None if told.get("schedules") is None else fields.items(told, "schedules"),
            credential=fields.optional_text(told, "credential"),
            next_in_s=_seconds(told.get("next_in_s")),
        )
    except (strict_json.StrictJSONError, fields.FieldError) as error:
        raise AnswerError(str(error)) from error


def _texts(source: fields.Object) -> dict[str, str]:
    return {key: str(value) for key, value in source.items()}


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return DEFAULT_NEXT_S
    return min(MOST_NEXT_S, max(0.0, float(value)))
