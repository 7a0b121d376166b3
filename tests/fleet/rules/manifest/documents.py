"""Valid documents to change one thing in."""

import copy


def job(**changes: object) -> dict[str, object]:
    """A small valid job; `changes` replace top-level keys."""
    return {
        "id": "inventory",
        "version": "1",
        "execute": {"shell": "sh", "script": "uname -a", "timeout": "30s"},
    } | changes


def executing(**changes: object) -> dict[str, object]:
    """A valid job whose `execute` has the changes; None removes a key."""
    document = job()
    execute = {"shell": "sh", "script": "uname -a", "timeout": "30s"} | changes
    document["execute"] = {key: value for key, value in execute.items() if value is not None}
    return document


def schedule(**changes: object) -> dict[str, object]:
    """A small valid schedule; `changes` replace top-level keys."""
    document: dict[str, object] = {
        "id": "inventory-6h",
        "when": {"per_pc": {"every": "6h"}},
        "job_id": "inventory",
        "target": {"all": True},
    }
    return copy.deepcopy(document) | changes
