"""A change of a manifest as the keys that change (JSON Merge Patch, RFC 7396)."""

MOST_DEPTH = 16


def merged(document: object, change: object, depth: int = 0) -> object:
    """Return `document` with `change` applied: null removes a key, mappings go deeper."""
    if not isinstance(change, dict) or depth > MOST_DEPTH:
        return change
    base = document if isinstance(document, dict) else {}
    result = {key: value for key, value in base.items() if change.get(key, value) is not None}
    for key, value in change.items():
        if value is not None:
            result[key] = merged(base.get(key), value, depth + 1)
    return result
