"""What a filter's value may be; each refuses what would quietly mean "no filter" or "nothing"."""

from typing import Any, Protocol

from django import forms
from django.core.exceptions import ValidationError
from django_filters import rest_framework as filters

from fleet.models import Agent
from fleet.models.ids import SlugQuerySet


class SlugRows(Protocol):
    """Rows that are found by their id, whatever its case."""

    def with_slug(self, *slugs: str) -> SlugQuerySet[Any]:
        """The rows of those ids."""


class PcField(forms.CharField):
    """A PC by name or uuid; its key is what the rows are narrowed by."""

    def clean(self, value: Any) -> Any:
        """Return the PC's key; refuse a name that no PC has."""
        text = super().clean(value)
        if not text:
            return None
        key = Agent.objects.named(text).values_list("pk", flat=True).first()
        if key is None:
            raise ValidationError("no PC has this name or uuid")
        return key


class SlugField(forms.CharField):
    """A job, schedule or group by its id; its key is what the rows are narrowed by."""

    def __init__(self, *, rows: SlugRows, **options: Any) -> None:
        self.rows = rows
        super().__init__(**options)

    def clean(self, value: Any) -> Any:
        """Return the row's key; refuse an id that nothing has."""
        text = super().clean(value)
        if not text:
            return None
        key = self.rows.with_slug(text).values_list("pk", flat=True).first()
        if key is None:
            raise ValidationError("nothing has this id")
        return key


class PcFilter(filters.Filter):
    """Rows of one PC."""

    field_class = PcField


class SlugFilter(filters.Filter):
    """Rows of one job, schedule or group."""

    field_class = SlugField
