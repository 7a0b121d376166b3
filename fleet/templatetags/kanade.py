"""Template tags: times, states and small charts. Every text is escaped; every chart has words.

The same functions fill the cells of the admin's lists.
"""

from collections.abc import Sequence

from django import template
from django.utils.html import format_html, format_html_join

from fleet.rules import charts
from fleet.rules.charts import Count, Part
from fleet.rules.looks import look_of, words_of
from scheduler.admin.cells import NOTHING, ago, drawn, moment
from scheduler.admin.paging import MOST_COUNTED
from scheduler.rules.spans import duration_words

__all__ = [
    "MOST_COUNTED", "NOTHING", "ago", "badges", "bars", "counted", "drawn", "duration", "heat_map",
    "moment", "pill", "share", "sparkline", "strip", "words",
]  # fmt: skip

register = template.Library()
register.simple_tag(moment)
register.simple_tag(ago)
register.simple_tag(drawn)


@register.filter
def duration(milliseconds: int | None) -> str:
    """A measured run time in words."""
    return duration_words(milliseconds)


@register.filter
def words(state: str) -> str:
    """A stored state as people read it."""
    return words_of(state)


@register.simple_tag
def counted(count: int, one: str, more: str) -> str:
    """How many there are; beyond the paginator's cap nobody counted."""
    if count >= MOST_COUNTED:
        return f"more than {MOST_COUNTED} {more}; narrow the list"
    return f"{count} {one if count == 1 else more}"


@register.simple_tag
def pill(state: str, text: str = "") -> str:
    """The state's word (or `text`) with its icon, in its colour."""
    return drawn(look_of(state), text or words_of(state))


def badges(texts: Sequence[str]) -> str:
    """Warnings side by side; empty for none."""
    look = look_of("quarantined")
    return format_html(
        '<span class="badges">{}</span>',
        format_html_join("", "{}", ((drawn(look, text),) for text in texts)),
    )


@register.inclusion_tag("kanade/charts/bars.html")
def bars(counts: Sequence[Count], title: str) -> dict[str, object]:
    """Stacked bars of what went well and what did not, with a table of the same."""
    ok, bad = sum(count.ok for count in counts), sum(count.bad for count in counts)
    return {
        "chart": charts.bars(counts, width=720, height=120),
        "title": f"{title}: {ok} succeeded, {bad} failed",
        "every": max(1, len(counts) // 6),
    }


@register.inclusion_tag("kanade/charts/share.html")
def share(parts: Sequence[Part], title: str, legend: bool = True) -> dict[str, object]:
    """A line that is divided as its parts are; the words and numbers stand under it."""
    spoken = ", ".join(f"{part.count} {part.word}" for part in parts if part.count) or "nothing"
    return {
        "segments": charts.shares(parts),
        "parts": parts,
        "title": f"{title}: {spoken}",
        "legend": legend,
    }


@register.inclusion_tag("kanade/charts/strip.html")
def strip(states: Sequence[str], title: str) -> dict[str, object]:
    """The last runs as small boxes, the newest at the right; failures are taller."""
    boxes = [
        {"x": index * 7, "tone": look_of(state).tone, "is_bad": look_of(state).tone == "bad"}
        for index, state in enumerate(states)
    ]
    bad = sum(1 for box in boxes if box["is_bad"])
    return {
        "boxes": boxes,
        "width": max(len(boxes) * 7 - 2, 1),
        "title": f"{title}: the last {len(boxes)}, {bad} failed" if boxes else f"{title}: none yet",
    }


@register.inclusion_tag("kanade/charts/sparkline.html")
def sparkline(values: Sequence[float], title: str) -> dict[str, object]:
    """A small line through the values; their range is its text."""
    spoken = f"from {min(values):g} to {max(values):g}" if values else "nothing yet"
    return {"points": charts.line(values, width=120, height=24), "title": f"{title}: {spoken}"}


@register.inclusion_tag("kanade/charts/heat.html")
def heat_map(rows: Sequence[tuple[str, Sequence[int]]], title: str) -> dict[str, object]:
    """One row a day, one cell an hour, darker for more; with a table of the same."""
    most = max((value for _, values in rows for value in values), default=0)
    drawn_rows = [
        {
            "label": label,
            "y": index * 16,
            "cells": [
                {"x": 76 + hour * 16, "level": charts.heat(value, most=most), "value": value}
                for hour, value in enumerate(values)
            ],
            "values": values,
        }
        for index, (label, values) in enumerate(rows)
    ]
    return {
        "rows": drawn_rows,
        "title": title,
        "height": max(len(rows) * 16, 1),
        "hours": range(24),
    }
