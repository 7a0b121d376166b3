"""What a runner takes next: how much, of which kinds and queues, and when it holds back."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from scheduler.engine import claim
from scheduler.engine.claim import Wish
from scheduler.engine.hand import Hand
from scheduler.engine.sift import sift
from scheduler.registry import REGISTRY
from scheduler.rules.claims import Claim
from scheduler.rules.leases import holds_back


@dataclass(slots=True)
class Taken:
    """One look at the queue. `more` says that another look may find something at once."""

    count: int
    more: bool
    next_due: datetime | None


@dataclass(slots=True)
class Intake:
    """The claiming side of one runner. A `cutoff` bounds it to what is due by then."""

    hand: Hand
    queues: tuple[str, ...] | None = None
    cutoff: datetime | None = None
    suspect_since: float | None = None
    _alone: bool = False
    _limited_queues: list[str] = field(default_factory=list)

    def look_around(self, *, at: float, now: datetime) -> None:
        """Note what changes seldom: limited queues, and whether a suspect waits."""
        self._limited_queues = claim.limited_queues()
        if not claim.suspect_is_due(self._wish(1), now=self._until(now)):
            self.suspect_since = None
        elif self.suspect_since is None:
            self.suspect_since = at

    def fill(self, *, at: float, now: datetime) -> Taken:
        """Claim as much as the threads can begin soon."""
        room = self._room(at=at)
        if room < 1:
            return Taken(0, more=False, next_due=None)
        claims = self._claim(room, now=self._until(now))
        self.hand.take(sift(claims, now=now))
        if len(claims) >= min(room, claim.BATCH):
            # With no room left the next look comes when a body ends.
            more = not self._alone and len(claims) < room
            return Taken(len(claims), more=more, next_due=None)
        next_due = claim.next_due()
        promoted = next_due is not None and next_due <= self._until(now)
        if promoted:
            claim.promote(now=self._until(now))
        return Taken(len(claims), more=promoted, next_due=None if promoted else next_due)

    def _room(self, *, at: float) -> int:
        """Return how many more to claim; a suspect runs alone and is waited for."""
        held = len(self.hand.claims)
        if self._alone and held:
            return 0
        self._alone = self.suspect_since is not None and held == 0
        if self._alone:
            return 1
        if holds_back(self.suspect_since, at=at):
            return 0
        workers, ahead = self.hand.executor.workers, self.hand.executor.pace.ahead
        room = workers + ahead - held
        # While enough waits for the threads, a few at a time would only cost statements.
        return 0 if held > workers and room < ahead // 2 else room

    def _claim(self, room: int, *, now: datetime) -> list[Claim]:
        if self._alone:
            found = claim.claim_suspect(self._wish(1), now=now)
            if found:
                return found
            self.suspect_since, self._alone = None, False
        claims: list[Claim] = []
        for kinds, most in self._groups():
            for queue in self._limited_queues:
                wish = self._wish(min(most, room - len(claims)), kinds)
                claims += claim.claim_limited(wish, queue, now=now)
            claims += claim.claim(self._wish(min(most, room - len(claims)), kinds), now=now)
        return claims

    def _groups(self) -> Iterator[tuple[list[str], int]]:
        """Yield kinds with how many of them may be taken; limited kinds one by one, first."""
        running = self.hand.by_kind()
        unlimited = []
        for kind in list(REGISTRY.kinds.values()):
            if kind.limit is None:
                unlimited.append(kind.name)
            elif running[kind.name] < kind.limit:
                yield [kind.name], kind.limit - running[kind.name]
        yield unlimited, claim.BATCH

    def _until(self, now: datetime) -> datetime:
        return self.cutoff or now

    def _wish(self, limit: int, kinds: list[str] | None = None) -> Wish:
        return Wish(
            runner_id=self.hand.runner.pk,
            limit=limit,
            kinds=list(REGISTRY.kinds) if kinds is None else kinds,
            queues=self.queues,
            skew=claim.SKEW if self.cutoff is None else timedelta(0),
        )
