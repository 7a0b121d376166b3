"""Sizes in bytes as people write them: `256KiB`, `1 MB`, `1024`."""

import re

from fleet.rules.problems import shown
from fleet.rules.reader import Reader

_SIZE = re.compile(r"([0-9]{1,15}) *([A-Za-z]*)")
_UNITS: dict[str, int] = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
}


class SizeError(ValueError):
    """The text is no size; the message says what would be right."""


def parse_size(text: str) -> int:
    """The number of bytes; units in any case, KB of a thousand and KiB of 1,024 bytes."""
    found = _SIZE.fullmatch(text.strip())
    unit = _UNITS.get(found[2].lower()) if found else None
    if not found or unit is None:
        raise SizeError(f"{shown(text)} is no size: write for example 256KiB or 1MB")
    return int(found[1]) * unit


def read_size(reader: Reader, key: str, *, least: int, most: int, default: int) -> int:
    """A number of bytes, as a number or with its unit, within the bounds."""
    if isinstance(reader.raw(key), int):
        size = reader.integer(key, least=least, most=most)
    else:
        size = reader.parsed(key, parse_size)
        if size is not None and not least <= size <= most:
            reader.problem(key, f"{size} bytes is out of bounds: write {least} to {most}")
            size = None
    if size == default:
        reader.document.pop(key, None)
    return default if size is None else size
