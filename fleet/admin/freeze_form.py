"""What a freeze needs to be told."""

import re
from datetime import datetime

from django import forms

from fleet.admin.errors import show_refusal
from fleet.admin.schedule_form import Offering
from fleet.admin.verbs import VerbForm
from fleet.flow.manifests import local_zone
from fleet.rules.bounds import zone_named
from fleet.rules.refusals import Refusal
from scheduler.rules.zones import ZoneError, at, zone_names

_WALL = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2})")
WHEN_HELP = "2026-12-24, or 2026-12-24 18:00, in the zone below."


class FreezeForm(VerbForm):
    """Why, and from when until when."""

    reason = forms.CharField(
        max_length=1000, help_text="Everybody sees it, on every page.", strip=True
    )
    starts = forms.CharField(label="From", required=False, help_text=f"Blank: now. {WHEN_HELP}")
    ends = forms.CharField(
        label="Until", required=False, help_text=f"Blank: until somebody thaws it. {WHEN_HELP}"
    )
    tz = forms.CharField(
        label="Zone",
        required=False,
        initial="local",
        widget=Offering("known-zones"),
        help_text="local (the server's), utc, or a name such as Europe/Budapest.",
    )

    def proposals(self) -> dict[str, list[str]]:
        """What the field with proposals offers."""
        return {"known-zones": ["local", "utc", *sorted(zone_names())]}

    def document(self) -> dict[str, object]:
        """The manifest of the freeze; a wall clock becomes the instant that it means."""
        tz = self.cleaned_data["tz"] or "local"
        inner = {
            "from": _instant(self.cleaned_data["starts"], tz),
            "until": _instant(self.cleaned_data["ends"], tz),
            "reason": self.cleaned_data["reason"],
            "tz": tz,
        }
        return {"freeze": {key: value for key, value in inner.items() if value}}

    def show(self, refusal: Refusal) -> None:
        """Show what the verb refused at its field."""
        fields = {"freeze.from": "starts", "freeze.until": "ends", "freeze.tz": "tz"}
        show_refusal(self, refusal, {**fields, "freeze.reason": "reason"})


def _instant(text: str, tz_name: str) -> str:
    """`2026-12-24 18:00` in the zone as an instant; anything else as it was typed."""
    found = _WALL.fullmatch(text.strip())
    if not found:
        return text.strip()
    try:
        wall = datetime.fromisoformat(f"{found[1]}T{found[2]}:00")
        tz = zone_named(tz_name, local_zone())
    except (ValueError, ZoneError):
        return text.strip()
    return at(wall, tz).isoformat()
