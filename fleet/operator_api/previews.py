"""What a schedule will do, as the API answers it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rest_framework import exceptions

from fleet.flow.manifests import local_zone, schedule_manifest
from fleet.models import Schedule
from fleet.operator_api.shapes.schedules import PreviewOut
from fleet.rules.preview import DEFAULT_COUNT, MOST_COUNT, diagnostics, empty_note, preview
from fleet.rules.when import words


def count_of(text: str | None) -> int:
    """Return how many fires are asked for, 1 to 50; raise ValidationError otherwise."""
    if not text:
        return DEFAULT_COUNT
    # `isdigit` alone takes digits of every script.
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MOST_COUNT))):
        raise exceptions.ValidationError({"count": [f"write a number from 1 to {MOST_COUNT}"]})
    count = int(text)
    if not 1 <= count <= MOST_COUNT:
        raise exceptions.ValidationError({"count": [f"write a number from 1 to {MOST_COUNT}"]})
    return count


def preview_of(schedule: Schedule, *, count: int, now: datetime) -> Mapping[str, Any]:
    """Return the next fires of a schedule, enabled or not."""
    manifest, local = schedule_manifest(schedule), local_zone()
    tz = manifest.zone(local)
    fires = preview(manifest, now=now, count=count, local=local)
    answer: Mapping[str, Any] = PreviewOut(
        {
            "when": words(manifest.when),
            "tz": tz.key,
            "enabled": schedule.enabled,
            "fires": [{"utc": fire, "local": fire.astimezone(tz).isoformat()} for fire in fires],
            "note": "" if fires else empty_note(manifest),
            "warnings": diagnostics(manifest, now=now, local=local),
        }
    ).data
    return answer
