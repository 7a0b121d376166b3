"""What a filter's value may be; each refuses what would quietly mean "no filter" or "nothing"."""

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django_filters import rest_framework as filters

from scheduler.api.strict import unknown_key

# Read by the paging, by content negotiation and by the views themselves.
ELSEWHERE = {"cursor", "page_size", "format", "include"}
LONGEST = 255


class StrictForm(forms.Form):
    """Refuses parameters that nobody reads: a typing error must not look like "no filter"."""

    def clean(self) -> dict[str, Any]:
        """Note each unknown parameter under its own name."""
        known = set(self.fields) | ELSEWHERE
        for name in sorted(set(self.data) - known):
            self.errors[name] = self.error_class([unknown_key(name, known)])
        return self.cleaned_data


class InstantField(forms.CharField):
    """A date-time with its offset; without one it would mean another instant to each reader."""

    def clean(self, value: Any) -> Any:
        """Return an instant in UTC, or None where nothing was given."""
        text = super().clean(value)
        if not text:
            return None
        try:
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is not None:
                return moment.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
        raise ValidationError("write a date-time with its offset, such as 2026-12-01T09:00:00Z")


class InstantFilter(filters.Filter):
    """Rows after or before an instant."""

    field_class = InstantField


class FlagFilter(filters.ChoiceFilter):
    """`true` or `false`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=[("true", "true"), ("false", "false")], **options)

    def filter(self, qs: QuerySet[Any], value: Any) -> QuerySet[Any]:
        """Narrow where one of the words was given."""
        return qs.filter(**{str(self.field_name): value == "true"}) if value else qs


class Filters(filters.FilterSet):
    """The base of all filters."""

    class Meta:
        form = StrictForm

    @property
    def now(self) -> datetime:
        """The moment of this request."""
        request: Any = self.request
        now: datetime = request.parser_context["view"].now
        return now
