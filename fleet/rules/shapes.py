"""Which JSON values a manifest may hold at all, before anyone asks what they mean."""

import math
from collections.abc import Iterator

from fleet.rules.problems import Problem, dotted
from scheduler.rules.texts import problem_of

MAX_DEPTH = 16
SAFE_INTEGER = 2**53


def shape_problems(value: object, path: str = "", depth: int = 0) -> Iterator[Problem]:
    """What in `value` cannot be stored as JSON or shown: by path, inner values and keys included.

    Refused are other types than JSON's, nesting over MAX_DEPTH, numbers that are not finite or
    beyond 2**53, and texts with NUL, lone surrogates or control characters.
    """
    if depth > MAX_DEPTH:
        yield Problem(path, f"is nested deeper than {MAX_DEPTH} levels")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _key_problems(key, path)
            yield from shape_problems(item, dotted(path, str(key)), depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from shape_problems(item, f"{path}[{index}]", depth + 1)
    else:
        message = scalar_problem(value)
        if message:
            yield Problem(path, message)


def _key_problems(key: object, path: str) -> Iterator[Problem]:
    if not isinstance(key, str):
        yield Problem(dotted(path, str(key)), "keys are text; write it in quotes")
    elif message := problem_of(key):
        yield Problem(path, f"has a key that {message}")


def scalar_problem(value: object) -> str | None:
    """What is wrong with a text, number, truth value or null; None where nothing is."""
    if isinstance(value, str):
        # Windows line ends are turned into LF by whoever reads the text.
        text = value.replace("\r\n", "\n")
        return problem_of(text) or (
            "has a carriage return without a line feed; remove it" if "\r" in text else None
        )
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        beyond = abs(value) > SAFE_INTEGER
        return "is beyond 2**53; write it as text in quotes" if beyond else None
    if isinstance(value, float):
        return None if math.isfinite(value) else "is no finite number"
    return f"is a {type(value).__name__}; only JSON's types are read"
