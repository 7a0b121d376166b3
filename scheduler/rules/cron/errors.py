"""The one error of the cron rules, and its sentences: what is wrong, and what would be right."""

import re
import unicodedata

from scheduler.rules.cron.fields import MONTHS, ORDER, WEEKDAY, WEEKDAYS, Field

SHOWN = 40  # characters of a bad part repeated in a message
EXAMPLE = "30 2 * * 1-5"
QUARTZ = "in Quartz 1 is Sunday and here 1 is Monday: name the weekdays, such as MON-FRI"
_FIVE = "minute hour day month weekday"
_RANDOM = re.compile(r"[HR](\(.*|/.*)?|.*~.*", re.DOTALL)


class CronError(ValueError):
    """The expression cannot be taken; the message says what is wrong and what would be right."""


def shown(text: str) -> str:
    """Return a part of the text for a message, cut where it is long."""
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def bad_character(char: str) -> str:
    """Say which character cannot stand in an expression; blanks come from pasting."""
    if char in {"\n", "\r"}:
        return "a cron expression is one line; put a second one into a schedule of its own"
    name = f"{unicodedata.name(char, 'an unprintable character')} (U+{ord(char):04X})"
    if char.isspace() and not char.isascii():
        return (
            f"it contains {name}, which looks like a space and comes from pasting; "
            "type ordinary spaces"
        )
    return f"it contains {name}; write digits, letters, spaces and , - * / # ?"


def bad_nickname(text: str, known: tuple[str, ...]) -> str:
    """Say why a text that begins with @ is no time."""
    if text == "@REBOOT":
        return "@reboot is an event, not a time; use run on start-up, or a time such as @daily"
    if text.startswith("@EVERY"):
        return "@every is not cron; for every 5 minutes write */5 * * * *, or use an interval"
    return f"{shown(text.lower())} is no nickname; known are {', '.join(known).lower()}"


def bad_count(parts: list[str], allowed: tuple[int, ...], nicknames: tuple[str, ...]) -> str:
    """Say how many fields are taken, with an example made of the five that were meant."""
    if not parts:
        return f"the expression is empty; write five fields ({_FIVE}), such as {EXAMPLE}"
    if len(parts) in {6, 7}:
        five = " ".join(parts[1:6]).lower()
        years = ", year last" if len(parts) == len(ORDER) else ""
        hint = f"; {QUARTZ}" if "?" in parts else ""
        return (
            f"{len(parts)} fields (seconds first{years}) are not taken here; "
            f"write five ({_FIVE}), such as {shown(five)}{hint}"
        )
    if "@" + parts[0] in nicknames:
        return f"a nickname begins with @; write @{parts[0].lower()}"
    *few, last = (str(count) for count in allowed)
    wanted = f"{', '.join(few)} or {last}" if few else last
    return (
        f"{wanted} fields are wanted ({_FIVE}), such as {EXAMPLE}; "
        f"this has {len(parts)}: {shown(' '.join(parts).lower())}"
    )


def backwards(part: str, low: str, high: str, field: Field) -> str:
    """Say that a range runs backwards, with the two ranges that were meant."""
    if field is WEEKDAY:
        first, last = ("SUN", "SAT") if low in WEEKDAYS else ("0", "6")
        two = f"{first}-{high}" if low == "7" else f"{low}-{last},{first}-{high}"
    else:
        two = f"{low}-{field.high},{field.low}-{high}"
    return f"{field.name} {shown(part)} runs backwards; write it forwards, such as {shown(two)}"


def bad_item(part: str, field: Field) -> str:
    """Say what is wrong with an item that is not of the grammar."""
    if not part:
        return f"the {field.name} field has an empty item; write a comma between two items only"
    return f"{field.name} {shown(part)} is not understood; {_hint(part, field)}"


def _hint(part: str, field: Field) -> str:
    if "?" in part:
        return "? stands alone, in the day or the weekday field; write *"
    if _RANDOM.fullmatch(part):
        return "random times are not taken; write a number, and spread the start with jitter"
    if part == "-":
        return "write a range without spaces, such as 1-5"
    if part[0] in "+-":
        return "numbers have no sign"
    return _hint_of_names(part, field)


def _hint_of_names(part: str, field: Field) -> str:
    if field is WEEKDAY and part.startswith("L"):
        return "the last Friday of the month is 5L"
    if part.endswith(("L", "W")) or "#" in part or part.startswith("L"):
        return "L, LW and 15W stand alone in the day field, 5L and FRI#2 in the weekday field"
    if field.names:
        numbers = f"{field.low}-{field.high}"
        return f"write numbers ({numbers}) or names ({field.names[0]}-{field.names[-1]})"
    if part[:3] in MONTHS or part[:3] in WEEKDAYS:
        return "names stand in the month field (JAN-DEC) and the weekday field (SUN-SAT) alone"
    example = "1, 1-5, */2 or 1-5/2" if field.low else "0, 0-5, */2 or 0-5/2"
    return f"write numbers from {field.low} to {field.high}, such as {example}"
