"""Cron expressions: what they may say, when they fire next in a zone, and that in plain words.

`grammar` reads the text, `branches` evaluates it on wall clocks (the one place that knows the cron
library), `firing` turns wall clocks into instants, `words` and `advice` speak to people.
"""

from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from functools import lru_cache

from scheduler.rules.cron import firing
from scheduler.rules.cron.branches import Walk, walk
from scheduler.rules.cron.errors import CronError
from scheduler.rules.cron.fields import Fields
from scheduler.rules.cron.grammar import read

__all__ = ["Cron", "CronError", "parse"]


@dataclass(frozen=True, slots=True)
class Cron:
    """An expression as it was typed, ready to say when it fires. Equal by text and day rule."""

    text: str
    day_rule: str
    fields: Fields = field(compare=False, repr=False)
    walk: Walk = field(compare=False, repr=False)

    def next_after(self, after: datetime, tz: tzinfo) -> datetime | None:
        """Return the first fire strictly after the aware `after`, in UTC; None = never again."""
        return firing.next_fire(
            self.walk, after, tz, follows_the_clock=self.fields.follows_the_clock
        )


def parse(text: object, *, day_rule: str = "or", fields: tuple[int, ...] = (5,)) -> Cron:
    """Read an expression of `fields` fields, or a nickname; raise CronError.

    `day_rule` says what two restricted day fields mean: "or" (either matches) or "and" (both).
    Quick for any input: whether it ever fires is another question (`parse_for_save`).
    """
    if not isinstance(text, str):
        raise CronError(f"a cron expression is a text such as 30 2 * * *, not {text!r:.40}")
    if day_rule not in {"or", "and"}:
        raise CronError(f"the day rule is or, or and; not {day_rule!r:.40}")
    return _parse(text, day_rule, tuple(fields))


@lru_cache(maxsize=2048)
def _parse(text: str, day_rule: str, allowed: tuple[int, ...]) -> Cron:
    fields = read(text, both_days=day_rule == "and", fields=allowed)
    return Cron(text, day_rule, fields, walk(fields))
