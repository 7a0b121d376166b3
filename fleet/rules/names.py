"""How things may be called: ids of jobs, schedules and groups, names of PCs, tags, parameters.

ASCII alone, so that no two names look alike and are different.
"""

import re

from fleet.rules.problems import shown

MAX_ID = 100
_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_PC = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_TAG = re.compile(r"[!-~]([ -~]{0,48}[!-~])?")
_PARAM = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")


class BadNameError(ValueError):
    """The text is no such name; the message says what would be right."""


def parse_slug(text: str) -> str:
    """An operator's id of a job, schedule or group; two that differ in case only are the same."""
    return _matching(
        _SLUG,
        text,
        "is no id: write 1 to 100 letters a-z, digits, dots, dashes or underscores, "
        "beginning with a letter or digit",
    )


def parse_pc(text: str) -> str:
    """A PC's name as it reports itself, or its uuid."""
    return _matching(
        _PC,
        text,
        "is no name or uuid of a PC: write 1 to 63 letters a-z, digits, dots, dashes or "
        "underscores, beginning and ending with a letter or digit",
    )


def parse_tag(text: str) -> str:
    """A tag: up to 50 printable ASCII characters, no blank at its ends."""
    return _matching(
        _TAG,
        text,
        "is no tag: write 1 to 50 ASCII characters without a blank at either end",
    )


def parse_param(text: str) -> str:
    """The name of a job's parameter, which the script finds as `KANADE_P_<NAME>`."""
    return _matching(
        _PARAM,
        text,
        "is no parameter's name: write capital letters A-Z, digits and underscores, "
        "for example RETENTION_DAYS",
    )


def _matching(pattern: re.Pattern[str], text: str, message: str) -> str:
    if pattern.fullmatch(text):
        return text
    raise BadNameError(f"{shown(text)} {message}")
