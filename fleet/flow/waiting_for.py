"""Who is named by a schedule and not there: PCs that are off, and names that nobody bears."""

from datetime import datetime

from django.db.models import Q

from fleet.flow.rosters import is_alive, members, unknown_names
from fleet.rules.manifest import ScheduleManifest

MOST_NAMED = 5


def missing_from(manifest: ScheduleManifest, *, now: datetime) -> str:
    """In words, or blank: named PCs that are waited for, and unknown PCs and groups.

    At most three queries, none where the target names nobody.
    """
    target = manifest.target
    if manifest.rollout is not None or not (target.pcs or target.groups):
        return ""
    parts = []
    if target.pcs:
        named = [name.casefold() for name in target.pcs]
        known = members().filter(Q(name_fold__in=named) | Q(uuid_text__in=named))
        silent = known.exclude(is_alive(now)).order_by("name_fold").values_list("name", flat=True)
        parts.append(_listed("waiting for", list(silent)))
    parts.append(_listed("unknown:", list(unknown_names(target))))
    return "; ".join(part for part in parts if part)


def _listed(words: str, names: list[str]) -> str:
    if not names:
        return ""
    shown = ", ".join(names[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    return f"{words} {shown} and {more} more" if more > 0 else f"{words} {shown}"
