"""JSON as RFC 8259 means it, with limits that hold before the work is done."""

import json
import re
from collections.abc import Iterator

from scheduler.rules.texts import problem_of

SAFE_INTEGER = 2**53
# A string that never ends counts to the end, and nothing is tried twice: with a pattern that can
# fail, sixteen kilobytes of escaped quotes took seconds.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)


class StrictJSONError(ValueError):
    """The bytes are not acceptable JSON; the message says what is wrong and where.

    Where one value is to blame, `path` is its dotted path and `problem` what is wrong with it.
    """

    def __init__(self, message: str, *, path: str = "", problem: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.problem = problem


def loads(
    data: bytes,
    *,
    max_bytes: int = 2_621_440,
    max_depth: int = 16,
    max_nodes: int = 10_000,
    any_text: bool = False,
) -> object:
    """Return the value of UTF-8 `data`.

    Refused: other encodings, a byte order mark, more than `max_bytes`, nesting over `max_depth`,
    more than `max_nodes` values, duplicate keys, NaN and infinities, integers beyond 2**53, floats
    that overflow, and texts with NUL, lone surrogates or control characters. With `any_text` (what
    PCs send) texts pass, for the caller to clean one by one.
    """
    if len(data) > max_bytes:
        raise StrictJSONError(f"the body has {len(data)} bytes; at most {max_bytes} are read")
    _refuse_depth(data, max_depth)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StrictJSONError(f"not UTF-8 at byte {error.start}; send UTF-8") from error
    if text.startswith("\ufeff"):
        raise StrictJSONError("starts with a byte order mark; send plain UTF-8")
    try:
        value: object = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_int=_integer,
            parse_float=_float,
        )
    except json.JSONDecodeError as error:
        raise StrictJSONError(
            f"not JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        ) from error
    _refuse_content(value, max_nodes, any_text=any_text)
    return value


def _refuse_depth(data: bytes, max_depth: int) -> None:
    """Count brackets outside strings, so that no parser ever recurses too deep."""
    depth = 0
    for char in _STRING.sub(b"", data):
        if char in b"[{":
            depth += 1
            if depth > max_depth:
                raise StrictJSONError(f"nested deeper than {max_depth} levels")
        elif char in b"]}":
            depth -= 1


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise StrictJSONError(f"the key {key!r} stands twice in one object")
        found[key] = value
    return found


def _refuse_constant(name: str) -> object:
    raise StrictJSONError(f"{name} is not JSON; send a finite number or null")


def _integer(digits: str) -> int:
    # The length first: turning a million digits into a number takes minutes.
    if len(digits) > 17 or abs(int(digits)) > SAFE_INTEGER:  # noqa: PLR2004  # digits of 2**53, sign
        raise StrictJSONError(f"the integer {digits[:20]} is beyond 2**53; send it as a string")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if value in {float("inf"), float("-inf")}:
        raise StrictJSONError(f"the number {digits[:20]} is too large")
    return value


def _refuse_content(value: object, max_nodes: int, *, any_text: bool) -> None:
    for count, (path, where, item) in enumerate(_walk(value, ""), start=1):
        if count > max_nodes:
            raise StrictJSONError(f"more than {max_nodes} values")
        problem = problem_of(item) if isinstance(item, str) and not any_text else None
        if problem:
            raise StrictJSONError(f"{where or 'the text'} {problem}", path=path, problem=problem)


def _walk(value: object, path: str) -> Iterator[tuple[str, str, object]]:
    """Yield each value and key with the path that is to blame and the words for the place."""
    yield path, path, value
    if isinstance(value, dict):
        for key, item in value.items():
            yield path, f"a key in {path or 'the object'}", key
            yield from _walk(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk(item, f"{path}[{index}]")
