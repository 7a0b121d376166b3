"""The three shapes of `when`: each PC, some PC of the target, or the wall clock."""

from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class PerPc:
    """Each targeted PC must have succeeded: within `every`, or once (`every` None)."""

    every: timedelta | None = None
    # As `once`, but only a success of the job's current version counts.
    per_version: bool = False
    every_text: str = field(default="", compare=False)

    @property
    def once(self) -> bool:
        """Whether one success is enough (for ever, or for this version)."""
        return self.every is None


@dataclass(frozen=True, slots=True)
class PerTarget:
    """Some PC of the target must have succeeded: within `every`, or once (`every` None)."""

    every: timedelta | None = None
    every_text: str = field(default="", compare=False)

    @property
    def once(self) -> bool:
        """Whether one success is enough for ever."""
        return self.every is None


@dataclass(frozen=True, slots=True)
class Calendar:
    """The wall clock: `at` (with `days`), or five cron fields in `cron`. No deduplication."""

    at: str | None = None
    days: tuple[str, ...] = ()
    cron: str | None = None


When = PerPc | PerTarget | Calendar


def is_reconcile(when: When) -> bool:
    """Whether the schedule states a condition that every minute looks at, not a time."""
    return not isinstance(when, Calendar)


def cooldown(when: When) -> timedelta | None:
    """How long a success counts; None = for ever, and for calendars, which do not ask."""
    return None if isinstance(when, Calendar) else when.every


def words(when: When) -> str:
    """One line for lists, logs and the audit: `per_pc every 6h`, `at 09:00 [mon-fri]`."""
    if isinstance(when, Calendar):
        if when.cron is not None:
            return f"cron {when.cron}"
        days = f" [{','.join(when.days)}]" if when.days else ""
        return f"at {when.at}{days}"
    name = "per_pc" if isinstance(when, PerPc) else "per_target"
    if isinstance(when, PerPc) and when.per_version:
        return f"{name} once_per_version"
    return f"{name} once" if when.once else f"{name} every {when.every_text}"
