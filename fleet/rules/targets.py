"""Who is meant: all, groups and PCs by name or uuid, and in which waves."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Target:
    """A union: every PC, the members of groups, and single PCs."""

    all: bool = False
    groups: tuple[str, ...] = ()
    pcs: tuple[str, ...] = ()

    @property
    def is_specified(self) -> bool:
        """Whether anybody is named at all."""
        return self.all or bool(self.groups) or bool(self.pcs)

    def matches(self, pc: str, groups: Collection[str], *, uuid: str = "") -> bool:
        """Whether the PC of that name, uuid and membership is meant. Case does not count."""
        if self.all:
            return True
        ours = {group.casefold() for group in groups}
        if any(group.casefold() in ours for group in self.groups):
            return True
        known_as = {pc.casefold(), uuid.casefold()} - {""}
        return any(name.casefold() in known_as for name in self.pcs)


@dataclass(frozen=True, slots=True)
class Wave:
    """One group, `delay` after the start of the execution (not after the wave before)."""

    group: str
    delay: timedelta


@dataclass(frozen=True, slots=True)
class FailureLimit:
    """How many PCs of a wave may fail before the next waves stay away."""

    count: int
    percent: bool = False

    def is_exceeded(self, failed: int, total: int) -> bool:
        """Whether `failed` of `total` PCs are more than allowed."""
        return failed * 100 > self.count * total if self.percent else failed > self.count


@dataclass(frozen=True, slots=True)
class Rollout:
    """Waves in the order written; no limit = later waves go out whatever happens."""

    waves: tuple[Wave, ...]
    max_failures: FailureLimit | None = None
