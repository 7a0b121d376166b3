"""The questions about a schedule: how is it, how far has it come, why does it not fire."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from fleet.flow.coverage import Done, coverage_of, covered, covered_pcs
from fleet.flow.explaining import explain
from fleet.flow.status import status_of
from fleet.models import Agent, Schedule
from fleet.operator_api.filter_fields import PcField
from fleet.operator_api.resource import Resource
from fleet.operator_api.shapes.insights import (
    CoverageOut,
    CoveredOut,
    ExplanationOut,
    shown_status,
)
from scheduler.api.filter_fields import InstantField, StrictForm

# Further away nothing is known, and clocks and calendars are not what they are now.
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = timedelta(days=5 * 366)


class ExplainQuery(StrictForm):
    """About which PC, and which time."""

    agent = PcField(required=False)
    at = InstantField(required=False)

    def clean_at(self) -> datetime | None:
        """Refuse a time that nobody can say anything about."""
        at: datetime | None = self.cleaned_data["at"]
        if at is not None and at < EARLIEST:
            raise ValidationError("write a time after 1970")
        return at


class CoverageQuery(StrictForm):
    """Which of the PCs are listed."""

    state = forms.ChoiceField(required=False, choices=[(state.value, state) for state in Done])


def explanation_of(view: Resource, schedule: Schedule) -> Any:
    """Return every gate with its verdict, now or at `?at=`, and about `?agent=`."""
    asked = view.query(ExplainQuery)
    agent = Agent.objects.get(pk=asked["agent"]) if asked["agent"] else None
    at = asked["at"] and min(asked["at"], view.now + LATEST)
    return ExplanationOut(explain(schedule, now=view.now, agent=agent, at=at)).data


def coverage_with_pcs(view: Resource, schedule: Schedule) -> Mapping[str, Any]:
    """Return M of N done and a page of the PCs by name, those in `?state=` alone."""
    state = view.query(CoverageQuery)["state"]
    counts = CoverageOut(coverage_of(schedule)).data
    pcs = covered_pcs(schedule, state=Done(state) if state else None)
    page = view.paginate_queryset(pcs) or []
    shown = CoveredOut(covered(schedule, page), many=True).data
    return {**counts, "pcs": view.get_paginated_response(shown).data}


def statuses(schedules: Sequence[Schedule], *, now: datetime) -> Mapping[int, Any]:
    """Return how each schedule is, by its key."""
    found = status_of(schedules, now=now)
    return {row.pk: shown_status(found[row.pk], enabled=row.enabled) for row in schedules}
