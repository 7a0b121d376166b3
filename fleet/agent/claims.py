"""What the agent remembers of each schedule that it fires itself: who runs now, what succeeded.

A claim is taken before a fire and ends with it. Its token is the time after which nobody believes
in that run any more, so that an agent that died in between is not blocked for ever.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from fleet.agent import fields, state
from fleet.agent.commands import Outcome
from fleet.rules.cooldown import Success, is_armed
from fleet.rules.when import PerTarget, When

SLACK = timedelta(seconds=60)
_MOST_FAILURES = 1_000_000


@dataclass(frozen=True, slots=True)
class Claim:
    """One schedule's state on this PC; all times are the server's (aware, UTC)."""

    token: datetime | None = None
    success: Success | None = None
    fired_at: datetime | None = None
    failures: int = 0
    failed_at: datetime | None = None
    # Calendars: every nominal time up to this one has been dealt with.
    looked_at: datetime | None = None

    def is_in_flight(self, now: datetime) -> bool:
        """Whether a run is believed to be going on."""
        return self.token is not None and now < self.token


@dataclass(frozen=True, slots=True)
class Taken:
    """A claim that was taken; `reclaimed` from a run that nobody believes in any more."""

    claim: Claim
    token: datetime
    reclaimed: bool


def take(
    claim: Claim, when: When, *, version: str, now: datetime, ttl: timedelta, is_alive: bool
) -> Taken | None:
    """Take the claim for a fire at `now`; None when it is not wanted or somebody runs.

    `ttl` is how long the run may take at most, `is_alive` whether one is known to be queued or
    running. One PC cannot know what others of its target did, so `per_target` never fires here.
    """
    if isinstance(when, PerTarget) or is_alive or claim.is_in_flight(now):
        return None
    if not is_armed(when, claim.success, version=version, now=now):
        return None
    token = now + ttl
    taken = replace(claim, token=token, fired_at=now)
    return Taken(taken, token, reclaimed=claim.token is not None)


def finish(
    claim: Claim, token: datetime, outcome: Outcome, *, version: str, now: datetime
) -> Claim:
    """The claim after a run that held `token` has ended; a later run's token stays.

    Only a script that ran and ended well is a success; only one that ran and failed is a failure.
    """
    if claim.token == token:
        claim = replace(claim, token=None)
    if outcome is Outcome.SUCCEEDED:
        return replace(claim, success=Success(now, version), failures=0, failed_at=None)
    if outcome in {Outcome.FAILED, Outcome.TIMED_OUT}:
        return replace(claim, failures=claim.failures + 1, failed_at=now)
    return claim


class ClaimBook:
    """The claims of all schedules, on disk before they are acted on."""

    def __init__(self, path: Path) -> None:
        """Read the file; StateError when it is damaged or open to others."""
        self._path = path
        stored = state.read_json(path) or {}
        try:
            self._claims = {key: _read(fields.child(stored, key)) for key in stored}
        except fields.FieldError as error:
            raise state.StateError(f"{path} is damaged: {error}") from error

    def get(self, key: str) -> Claim:
        """A schedule's claim."""
        return self._claims.get(key, Claim())

    def put(self, key: str, claim: Claim) -> None:
        """Store a claim; raises OSError when the disk refuses, then nothing has changed."""
        self._save(self._claims | {key: claim})

    def keep_only(self, keys: set[str]) -> None:
        """Forget the claims of schedules that are gone. Raises OSError."""
        if not keys >= self._claims.keys():
            self._save({key: claim for key, claim in self._claims.items() if key in keys})

    def _save(self, claims: dict[str, Claim]) -> None:
        state.write_json(self._path, {key: _written(claim) for key, claim in claims.items()})
        self._claims = claims


def _written(claim: Claim) -> dict[str, object]:
    return {
        "token": _text(claim.token),
        "success_at": _text(claim.success.at) if claim.success else None,
        "success_version": claim.success.version if claim.success else "",
        "fired_at": _text(claim.fired_at),
        "failures": claim.failures,
        "failed_at": _text(claim.failed_at),
        "looked_at": _text(claim.looked_at),
    }


def _read(stored: Mapping[str, object]) -> Claim:
    success_at = fields.optional_moment(stored, "success_at")
    return Claim(
        token=fields.optional_moment(stored, "token"),
        success=Success(success_at, fields.text(stored, "success_version")) if success_at else None,
        fired_at=fields.optional_moment(stored, "fired_at"),
        failures=fields.whole(stored, "failures", least=0, most=_MOST_FAILURES),
        failed_at=fields.optional_moment(stored, "failed_at"),
        looked_at=fields.optional_moment(stored, "looked_at"),
    )


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
