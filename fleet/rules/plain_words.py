"""What a schedule says, as a sentence for people: when it fires and whom it means."""

from zoneinfo import ZoneInfo

from fleet.rules.calendar import At, lower
from fleet.rules.manifest import ScheduleManifest
from fleet.rules.targets import Rollout, Target
from fleet.rules.when import Calendar, PerTarget, When

MOST_NAMES = 3
_UTC = ZoneInfo("UTC")


def when_words(when: When) -> str:
    """The `when` as a sentence: "each PC, every 6h", "at 09:00 on Monday to Friday"."""
    if isinstance(when, Calendar):
        lowered = lower(when, _UTC)
        if isinstance(lowered, At):
            return f"once, at {lowered.wall:%Y-%m-%d %H:%M}"
        return lowered.describe()
    who = "one PC of the target" if isinstance(when, PerTarget) else "each PC"
    if not isinstance(when, PerTarget) and when.per_version:
        return f"{who}, once for each version"
    return f"{who}, once" if when.once else f"{who}, every {when.every_text}"


def target_words(target: Target, rollout: Rollout | None) -> str:
    """Whom it means: "every PC", "groups office, lab", "3 PCs", "waves canary, office"."""
    if rollout is not None:
        return "waves " + _first([wave.group for wave in rollout.waves])
    if target.all:
        return "every PC"
    parts = []
    if target.groups:
        word = "group" if len(target.groups) == 1 else "groups"
        parts.append(f"{word} {_first(target.groups)}")
    if target.pcs:
        parts.append(target.pcs[0] if len(target.pcs) == 1 else f"{len(target.pcs)} PCs")
    return " and ".join(parts) or "nobody"


def zone_words(schedule: ScheduleManifest) -> str:
    """The zone in which its times are meant."""
    if schedule.tz != "local":
        return schedule.tz.upper() if schedule.tz == "utc" else schedule.tz
    return "each PC's own zone" if schedule.runs_on == "agent" else "the server's zone"


def _first(names: list[str] | tuple[str, ...]) -> str:
    rest = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")
