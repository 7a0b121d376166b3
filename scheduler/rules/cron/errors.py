"""The one error of the cron rules, and its sentences: what is wrong, and what would be right."""

import unicodedata

from scheduler.rules.cron.fields import MONTHS, WEEKDAYS, Field

SHOWN = 40  # characters of a bad part repeated in a message
EXAMPLE = "30 2 * * 1-5"


class CronError(ValueError):
    """The expression cannot be taken; the message says what is wrong and what would be right."""


def bad_character(char: str) -> str:
    if char in {"\n", "\r"}:
        return "a cron expression is one line; write one expression"
    name = unicodedata.name(char, "control character")
    if char.isspace() and char not in "\v\f":
        return (
            f"there is a {name} (U+{ord(char):04X}) in it, which looks like a space and comes from "
            "pasting; type ordinary spaces"
        )
    return (
        f"there is a {name} (U+{ord(char):04X}) in it; use digits, letters, spaces and , - * / # ?"
    )


def bad_count(parts: list[str], allowed: tuple[int, ...]) -> str:
    order = "minute hour day month weekday"
    if not parts:
        return f"the expression is empty; write five fields ({order}), such as {EXAMPLE}"
    if len(parts) in {6, 7}:
        five = " ".join(parts[1:6]).lower()
        what = "seconds first" if len(parts) == 6 else "seconds first, year last"  # noqa: PLR2004
        return (
            f"{len(parts)} fields ({what}) are not taken here; write five ({order}), "
            f"such as {shown(five)}"
        )
    wanted = " or ".join(str(count) for count in allowed)
    return (
        f"{wanted} fields are wanted ({order}), such as {EXAMPLE}; this has {len(parts)}: "
        f"{shown(' '.join(parts))}"
    )


def bad_item(part: str, field: Field) -> str:
    """Say what is wrong with an item that is not of the grammar."""
    if not part:
        return f"the {field.name} field has an empty item; write the commas between two items"
    return f"{field.name} {shown(part)} is not understood; {_hint(part, field)}"


def _hint(part: str, field: Field) -> str:
    if "?" in part:
        return "? stands alone in the day or the weekday field; write *"
    if part[0] in "HR~" or "~" in part:
        return "random and hashed times are not taken; write a number and use jitter to spread"
    if part[:3] in MONTHS or part[:3] in WEEKDAYS:
        return "names have three letters (JAN-DEC, SUN-SAT), in the month and weekday fields only"
    if part[0] in "+-":
        return "numbers have no sign"
    if part.endswith(("L", "W")) or "#" in part or part.startswith("L"):
        return "L, LW and 15W stand in the day field, 5L and FRI#2 in the weekday field"
    example = "1, 1-5, */2 or 1-5/2" if field.low else "0, 0-5, */2 or 0-5/2"
    return f"write numbers from {field.low} to {field.high}, such as {example}"


def shown(text: str) -> str:
    """Return a part of the text for a message, cut where it is long."""
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
