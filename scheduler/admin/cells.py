"""Cells of lists and pages: times, states with an icon, links. Every text is escaped."""

from datetime import UTC, datetime

from django.utils import timezone
from django.utils.html import format_html

from scheduler.rules.looks import Look
from scheduler.rules.spans import relative

NOTHING = "\N{EN DASH}"


def moment(value: datetime | None, seconds: bool = False) -> str:
    """The time in the viewer's zone with UTC beside it; a dash for none."""
    if value is None:
        return NOTHING
    here, utc = timezone.localtime(value), value.astimezone(UTC)
    clock = "%H:%M:%S" if seconds else "%H:%M"
    exact, shown = utc.isoformat(timespec="seconds"), here.strftime(f"%Y-%m-%d {clock}")
    if not here.utcoffset():
        return format_html(
            '<time datetime="{}">{} <span class="utc">UTC</span></time>', exact, shown
        )
    beside = utc.strftime(clock if here.date() == utc.date() else f"%m-%d {clock}")
    return format_html(
        '<time datetime="{}">{} <span class="utc">{} · {} UTC</span></time>',
        exact,
        shown,
        here.tzname(),
        beside,
    )


def ago(value: datetime | None, now: datetime) -> str:
    """How long ago or ahead; the exact time as a tooltip."""
    if value is None:
        return NOTHING
    utc = value.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        utc.isoformat(timespec="seconds"),
        utc.strftime("%Y-%m-%d %H:%M:%S UTC"),
        relative(value, now=now),
    )


def drawn(look: Look, text: str) -> str:
    """A text with an icon, in a colour."""
    return format_html(
        '<span class="pill pill-{}"><svg class="icon" aria-hidden="true">'
        '<use href="#k-{}"></use></svg>{}</span>',
        look.tone,
        look.icon,
        text,
    )
