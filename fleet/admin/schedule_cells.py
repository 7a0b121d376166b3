"""The columns of the list of schedules."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.template.loader import render_to_string
from django.utils.html import format_html

from fleet.admin.cells import short
from fleet.admin.schedule_check import fire_of
from fleet.admin.schedule_page import Row, coverage_parts
from fleet.flow.manifests import local_zone
from fleet.models import Schedule
from fleet.rules.plain_words import target_words, when_words
from fleet.rules.preview import diagnostics
from fleet.rules.when import Calendar
from fleet.templatetags.kanade import NOTHING, ago, badges, moment, pill

ROW = "_kanade_row"


def columns(now: datetime) -> list[Any]:
    """The columns for a list that is drawn at `now`."""
    return [_ident(now), says, next_fire, _last_look(now), last_day, coverage]


def row_of(schedule: Schedule) -> Row:
    """What the list has read about this schedule."""
    row: Row = schedule.__dict__[ROW]
    return row


def _ident(now: datetime) -> Callable[[Schedule], str]:
    @admin.display(description="id", ordering="slug")
    def ident(schedule: Schedule) -> str:
        return format_html(
            '{}<br><span class="utc">runs {}</span>{}',
            schedule.slug,
            schedule.job.slug,
            badges(notes_of(schedule, now)),
        )

    return ident


@admin.display(description="when and where")
def says(schedule: Schedule) -> str:
    """The `when` as a sentence, and whom it means."""
    manifest = row_of(schedule).manifest
    if manifest is None:
        return pill("failed", "cannot be read")
    return format_html(
        '{}<br><span class="utc">{}</span>',
        short(when_words(manifest.when)),
        target_words(manifest.target, manifest.rollout),
    )


@admin.display(description="next fire")
def next_fire(schedule: Schedule) -> str:
    """The next time by the clock, for the viewer and in the schedule's own zone."""
    manifest = row_of(schedule).manifest
    if manifest is None or not schedule.enabled:
        return NOTHING
    if not isinstance(manifest.when, Calendar):
        return "looks every minute"
    if schedule.next_fire_at is None:
        return "never again"
    fire = fire_of(schedule.next_fire_at, manifest.zone(local_zone()))
    return format_html(
        '{}<br><span class="utc">{}</span>', moment(schedule.next_fire_at), fire.in_zone
    )


def _last_look(now: datetime) -> Callable[[Schedule], str]:
    @admin.display(description="last look")
    def last_look(schedule: Schedule) -> str:
        if not schedule.enabled:
            return pill("disabled")
        evaluation = row_of(schedule).evaluation
        if evaluation is None:
            return NOTHING
        return format_html("{} {}", pill(evaluation.reason), ago(evaluation.since, now))

    return last_look


@admin.display(description="24 h")
def last_day(schedule: Schedule) -> str:
    """How its runs of the last day ended."""
    ended = row_of(schedule).ended
    if not ended.ok and not ended.bad:
        return NOTHING
    bad = pill("failed", f"{ended.bad} failed") if ended.bad else ""
    return format_html("{} {}", pill("succeeded", f"{ended.ok} ok"), bad)


@admin.display(description="coverage")
def coverage(schedule: Schedule) -> str:
    """How many of its PCs did the job, as a bar and in words."""
    counted = row_of(schedule).coverage
    if counted is None or not counted.total:
        return NOTHING
    told = {"parts": coverage_parts(counted), "coverage": counted}
    return render_to_string("kanade/coverage_cell.html", told)


def notes_of(schedule: Schedule, now: datetime) -> list[str]:
    """What to know about it: it is kept, and does not do what it seems to say."""
    manifest = row_of(schedule).manifest
    if manifest is None:
        return [short(row_of(schedule).problem)]
    found = list(diagnostics(manifest, now=now, local=local_zone()))
    if schedule.job.revoked_at is not None:
        found.append("its job is revoked")
    if schedule.targets_dirty_at is not None:
        found.append("its target is being computed")
    return [short(note, 60) for note in found]
