"""What the next version after one could be called."""

import re

_LAST_NUMBER = re.compile(r"(\d+)(?!.*\d)", re.ASCII)


def bumped(version: str) -> str:
    """The version with its last number raised by one: "1.2.0" becomes "1.2.1"."""
    found = _LAST_NUMBER.search(version)
    if not found:
        return f"{version}.1" if version else "1"
    number = str(int(found[1]) + 1).zfill(len(found[1]))
    return version[: found.start()] + number + version[found.end() :]
