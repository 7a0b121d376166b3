"""Which kind of manifest a document is, told by the key that only that kind has."""

from collections.abc import Mapping
from enum import StrEnum

from fleet.rules.problems import ManifestError, Problem


class Kind(StrEnum):
    """What a document describes."""

    JOB = "job"
    SCHEDULE = "schedule"
    GROUP = "group"
    FREEZE = "freeze"


_KEY = {"execute": Kind.JOB, "when": Kind.SCHEDULE, "members": Kind.GROUP, "freeze": Kind.FREEZE}


def kind_of(document: object) -> Kind:
    """The kind of a document; ManifestError where none or more than one of the keys is there."""
    keys = _KEY.keys() & document.keys() if isinstance(document, Mapping) else set()
    if len(keys) == 1:
        return _KEY[keys.pop()]
    choice = "execute (a job), when (a schedule), members (a group) or freeze"
    found = f"has {' and '.join(sorted(keys))}; write" if keys else "is no manifest: it needs"
    raise ManifestError([Problem("", f"{found} exactly one of {choice}")])


def identity(document: object) -> str:
    """The id that a document gives, for reports on it; empty where it gives none."""
    found = document.get("id") if isinstance(document, Mapping) else None
    return found if isinstance(found, str) else ""
