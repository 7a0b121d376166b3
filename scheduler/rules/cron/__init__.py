"""Cron expressions: what they may say, when they fire next in a zone, and that in plain words.

`grammar` reads the text, `branches` evaluates it on wall clocks (the one place that knows the cron
library), `firing` turns wall clocks into instants, `words` and `advice` speak to people.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from functools import lru_cache

from scheduler.rules.cron import advice, firing, words
from scheduler.rules.cron.branches import Walk, walk
from scheduler.rules.cron.errors import CronError
from scheduler.rules.cron.fields import Fields
from scheduler.rules.cron.grammar import read

__all__ = ["Cron", "CronError", "parse", "parse_for_save", "require_fires"]


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

    def fires(self, after: datetime, tz: tzinfo) -> Iterator[datetime]:
        """Yield the fires after the aware `after`, in UTC, without end unless it fires no more."""
        fire = self.next_after(after, tz)
        while fire is not None:
            yield fire
            fire = self.next_after(fire, tz)

    def describe(self) -> str:
        """Return it in plain words, such as `at 02:30 on Monday to Friday`."""
        return words.describe(self.fields)

    def rule(self) -> str:
        """Return what it does where the clock is changed, to stand beside its next runs."""
        return words.CLOCK_RULE if self.fields.follows_the_clock else words.FIXED_RULE

    def warnings(self, tz: tzinfo, now: datetime) -> tuple[str, ...]:
        """Return what may surprise whoever saves it, one sentence a point."""
        return tuple(advice.warnings(self.fields, self.walk, now, tz))

    def per_day(self, tz: tzinfo, now: datetime) -> int:
        """Return how often it runs on the local day of its next run; 0 = never again."""
        return advice.per_day(self.fields, self.walk, now, tz)


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


def require_fires(cron: Cron, after: datetime, tz: tzinfo) -> datetime:
    """Return the first fire after `after`, in UTC; raise CronError if there is none."""
    fire = cron.next_after(after, tz)
    if fire is None:
        raise CronError(advice.never(cron.fields, cron.walk, after, tz))
    return fire


def parse_for_save(
    text: object,
    *,
    now: datetime,
    tz: tzinfo,
    day_rule: str = "or",
    fields: tuple[int, ...] = (5,),
) -> Cron:
    """Read an expression that a person saves: as `parse`, and it must be clear and fire again."""
    cron = parse(text, day_rule=day_rule, fields=fields)
    advice.require_clear(cron.fields)
    require_fires(cron, now, tz)
    return cron
