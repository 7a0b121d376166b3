"""Cells of lists that several pages share; texts of PCs and people are always escaped."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html

from fleet.models import Agent
from fleet.rules.charts import Part
from fleet.rules.execution_states import Tally
from fleet.rules.presence import presence
from fleet.templatetags.kanade import NOTHING, ago, pill

MOST_NAMES = 4
LONGEST = 80


def short(text: str, most: int = LONGEST) -> str:
    """The beginning of a text, for a cell."""
    return text if len(text) <= most else text[: most - 1] + "…"


def first_of(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    if not names:
        return NOTHING
    rest = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def fact(facts: object, key: str) -> str:
    """One fact that a PC reported; a dash where it did not, whatever it reported instead."""
    value = facts.get(key) if isinstance(facts, Mapping) else None
    return short(str(value)) if isinstance(value, (str, int, float)) and value != "" else NOTHING


def last_seen(agent: Agent) -> datetime | None:
    """When the PC was last heard; None for one without a presence row."""
    return agent.presence.last_seen_at if hasattr(agent, "presence") else None


def heard(now: datetime) -> Callable[[Agent], str]:
    """The column that says online, stale or offline, and since when."""

    @admin.display(description="last heard", ordering="presence__last_seen_at")
    def column(agent: Agent) -> str:
        seen = last_seen(agent)
        return format_html("{} {}", pill(presence(seen, now=now)), ago(seen, now))

    return column


def link(page: str, key: object, text: str) -> str:
    """A link to an object's page; `page` is a URL name with one argument."""
    return format_html('<a href="{}">{}</a>', reverse(page, args=[key]), text)


def parts_of(tally: Tally) -> list[Part]:
    """How the commands of an execution stand, in the order in which a bar shows them."""
    to_come = max(tally.expected - tally.over - tally.waiting - tally.running, 0)
    return [
        Part("succeeded", tally.succeeded, "ok"),
        Part("failed", tally.failed, "bad"),
        Part("outcome unknown", tally.outcome_unknown, "warn"),
        Part("expired", tally.expired, "warn"),
        Part("running", tally.running, "run"),
        Part("waiting", tally.waiting + to_come, "idle"),
        Part("skipped", tally.skipped, "idle"),
        Part("cancelled", tally.cancelled, "idle"),
    ]
