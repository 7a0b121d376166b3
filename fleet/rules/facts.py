"""What a PC says about itself: kept within bounds and made harmless, item by item."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.rules.texts import clean_text
from scheduler.rules.zones import ZoneError, zone

UTC_NAME = "UTC"
MAX_TEXT = 200
MAX_SHELLS = 20
MAX_ETAG = 64
_TEXTS = ("os", "code_page", "agent_version", "zone")


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts as stored, the zone that the PC's local times mean, and its bundle of schedules."""

    document: dict[str, object] = field(default_factory=dict)
    zone: str = UTC_NAME
    schedules_etag: str = ""


def read_facts(value: object) -> Facts:
    """Return the facts in a PC's report; what is no fact is left out.

    A zone that cannot be mapped counts as UTC, and the facts say so.
    """
    if not isinstance(value, Mapping):
        return Facts()
    document: dict[str, object] = {
        name: clean_text(str(value[name]), most=MAX_TEXT)
        for name in _TEXTS
        if isinstance(value.get(name), (str, int))
    }
    shells = value.get("shells")
    if isinstance(shells, list):
        names = [clean_text(name, most=40) for name in shells if isinstance(name, str)]
        document["shells"] = names[:MAX_SHELLS]
    etag = value.get("schedules_etag")
    has_bundle = clean_text(etag, most=MAX_ETAG) if isinstance(etag, str) else ""
    named = document.get("zone", UTC_NAME)
    try:
        return Facts(document, zone(named).key, has_bundle)
    except ZoneError:
        document["zone_warning"] = "this zone is not known here; its local times are read as UTC"
        return Facts(document, schedules_etag=has_bundle)
