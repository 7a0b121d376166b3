"""What an explanation is asked about: a PC, and a moment."""

from datetime import UTC, datetime

from django import forms
from django.utils import timezone

from fleet.models import Agent
from fleet.rules.bounds import FIRST_YEAR, LAST_YEAR


class ExplainForm(forms.Form):
    """Both may be left out: then it is about the whole schedule, now."""

    agent = forms.CharField(
        label="PC", required=False, max_length=255, help_text="Its name or uuid; blank: all."
    )
    at = forms.CharField(
        label="At",
        required=False,
        max_length=64,
        help_text="2026-12-24 18:00 in your zone; blank: now.",
    )

    def clean_agent(self) -> Agent | None:
        """Return the PC."""
        name = self.cleaned_data["agent"].strip()
        if not name:
            return None
        found = Agent.objects.named(name).first()
        if found is None:
            raise forms.ValidationError(f'there is no PC "{name}"')
        return found

    def clean_at(self) -> datetime | None:
        """Return the moment, in UTC."""
        text = self.cleaned_data["at"].strip()
        if not text:
            return None
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            moment = None
        if moment is None or not FIRST_YEAR < moment.year < LAST_YEAR:
            raise forms.ValidationError("write a date and time such as 2026-12-24 18:00")
        return (moment if moment.tzinfo else timezone.make_aware(moment)).astimezone(UTC)
