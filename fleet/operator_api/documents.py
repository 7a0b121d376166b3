"""The manifests in the words of OpenAPI: what a program that writes one must know.

They describe; the rules of `fleet.rules.manifest` decide. A test holds the two together.
"""

from typing import Any, ClassVar

from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema
from rest_framework import serializers

from fleet.rules.manifest import Misfire, RunAs, RunsOn, Shell

Schema = dict[str, Any]


def text(description: str = "", **more: object) -> Schema:
    """Return the schema of a text."""
    found: Schema = {"type": "string", **more}
    return found | ({"description": description} if description else {})


def word(options: type[Shell | RunAs | RunsOn | Misfire], description: str = "") -> Schema:
    """Return the schema of one of some words."""
    return text(description, enum=[option.value for option in options])


def texts(description: str = "") -> Schema:
    """Return the schema of a list of texts."""
    return {"type": "array", "items": text()} | (
        {"description": description} if description else {}
    )


def mapping(needed: tuple[str, ...] = (), /, **keys: Schema) -> Schema:
    """Return the schema of a mapping with these keys and no others."""
    found: Schema = {"type": "object", "properties": keys, "additionalProperties": False}
    return found | ({"required": list(needed)} if needed else {})


def named(values: Schema) -> Schema:
    """Return the schema of a mapping from names to `values`."""
    return {"type": "object", "additionalProperties": values}


ID = text("Letters, digits, dots, dashes, underscores; case does not count.", maxLength=100)
DURATION = text("Such as 30s, 5m, 1h 30m.", maxLength=64, example="5m")
BOUND = text("A date, or a date-time with its offset.", example="2026-12-24")
FLAG: Schema = {"type": "boolean"}
ANYTHING: Schema = {"description": "Kept, without effect here."}
COMMON: dict[str, Schema] = {
    "id": ID,
    "description": text(),
    "tags": texts(),
    "origin": mapping(repo=text(), path=text(), script_file=text(), commit=text()),
}
TARGET = mapping(all=FLAG, groups=texts("Ids of groups."), pcs=texts("Names or uuids of PCs."))
_EVERY = mapping(("every",), every=DURATION)
_WHEN = mapping(
    per_pc={"oneOf": [text(enum=["once", "once_per_version"]), _EVERY]},
    per_target={"oneOf": [text(enum=["once"]), _EVERY]},
    calendar=mapping(
        at=text("HH:MM, or a date with HH:MM.", example="09:00"),
        days={"type": "array", "items": {}, "example": ["mon-fri"]},
        cron=text("Five fields.", example="0 9 * * mon-fri", maxLength=512),
    ),
) | {"minProperties": 1, "maxProperties": 1}
_PARAM = {
    "oneOf": [text("The default."), mapping(default=text(), required=FLAG, description=text())]
}
_SIZE = {"oneOf": [{"type": "integer"}, text(example="256KiB")]}
_UNUSED = ("inventory", "check", "collect", "feed", "emit", "client", "aggregate")

JOB = mapping(
    ("id", "version", "execute"),
    **COMMON,
    version=text(example="1.2.0", maxLength=100),
    execute=mapping(
        ("shell", "script", "timeout"),
        shell=word(Shell),
        script=text("At most 128 KiB."),
        timeout=DURATION,
        run_as=word(RunAs),
        cwd=text(),
        params=named(_PARAM),
        max_output=_SIZE,
        bypass_local_limit=FLAG,
    ),
    require_approval=FLAG,
    tier=text(enum=["endpoint"]),
    staleness=text(enum=["cached", "unchecked"]),
    **dict.fromkeys(_UNUSED, ANYTHING),
)
SCHEDULE = mapping(
    ("id", "when", "job_id"),
    **COMMON,
    when=_WHEN,
    job_id=ID,
    params=named(text()),
    target=TARGET,
    rollout=mapping(
        ("waves",),
        strategy=text(enum=["wave"]),
        waves={
            "type": "array",
            "items": mapping(("group", "delay"), group=ID, delay=DURATION),
        },
        max_failures={"oneOf": [{"type": "integer"}, text(example="10%")]},
    ),
    jitter=DURATION,
    starting_deadline=DURATION,
    active=mapping(**{"from": BOUND, "until": BOUND}),
    constraints=mapping(
        window=text(example="22:00-05:00"),
        skip_dates=texts("YYYY-MM-DD."),
        max_concurrent={"type": "integer", "minimum": 1},
    ),
    on_failure=mapping(
        retry=mapping(("max", "backoff"), max={"type": "integer"}, backoff=DURATION),
        backoff={"oneOf": [text(enum=["on", "off"]), FLAG]},
    ),
    tz=text("local, utc or a name such as Europe/Budapest."),
    misfire=word(Misfire),
    runs_on=word(RunsOn),
    enabled=FLAG,
)
GROUP = mapping(
    ("id",), id=ID, description=text(), members=texts("Names or uuids of PCs, each once.")
)
FREEZE = mapping(**{"from": BOUND, "until": BOUND}, reason=text(), tz=text("local, utc or a name."))


class Document(serializers.Serializer[Any]):
    """A manifest; what it may hold is its `json_schema`."""

    json_schema: ClassVar[Schema]


class JobDocument(Document):
    """A job's manifest."""

    json_schema = JOB


class ScheduleDocument(Document):
    """A schedule's manifest."""

    json_schema = SCHEDULE


class GroupDocument(Document):
    """A group's manifest."""

    json_schema = GROUP


class FreezeDocument(Document):
    """A freeze's manifest."""

    json_schema = FREEZE


class DocumentSchema(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]  # the package's registry
    """Tells the package that a document's schema is written down."""

    target_class = "fleet.operator_api.documents.Document"
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: str) -> Schema:
        """Return the schema as it stands."""
        schema: Schema = self.target.json_schema
        return schema
