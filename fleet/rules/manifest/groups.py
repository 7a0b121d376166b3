"""A group: PCs by name or uuid."""

from dataclasses import dataclass, field

from fleet.rules.manifest.parts import opened, read_description, read_id
from fleet.rules.names import parse_pc
from fleet.rules.problems import Problem

MAX_MEMBERS = 10_000


@dataclass(frozen=True, slots=True)
class GroupManifest:
    """A valid group; `members` are sorted, each once, case aside."""

    id: str
    members: tuple[str, ...] = ()
    description: str = ""
    document: dict[str, object] = field(compare=False, repr=False, kw_only=True)
    warnings: tuple[Problem, ...] = field(default=(), compare=False)


def parse_group(document: object) -> GroupManifest:
    """The group that a JSON-like value describes; ManifestError names everything wrong."""
    reader = opened(document, "id, members")
    group_id = read_id(reader, "id", "id: office")
    description = read_description(reader)
    named = reader.texts("members", parse_pc, most=MAX_MEMBERS)
    members = tuple(sorted({name.casefold(): name for name in named}.values(), key=str.casefold))
    reader.document["members"] = list(members)
    canonical = reader.finish()
    reader.notes.raise_problems()
    return GroupManifest(
        group_id, members, description, document=canonical, warnings=tuple(reader.notes.warnings)
    )
