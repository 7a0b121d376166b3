"""Fires schedules with `runs_on: agent`, with or without a network."""

import hashlib
import logging
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from fleet.agent import bundle, facts, local_rules, state
from fleet.agent.bundle import BundleFile, LocalSchedule
from fleet.agent.checks import Pinned
from fleet.agent.claims import Claim, ClaimBook, finish, take
from fleet.agent.clock import ServerClock
from fleet.agent.commands import Command, Retry, Script
from fleet.agent.gate import Gate
from fleet.agent.results import Result
from fleet.agent.work import Work
from fleet.rules.manifest import JobManifest
from fleet.rules.params import param_values
from scheduler.rules.contained import contained
from scheduler.rules.zones import zone

logger = logging.getLogger(__name__)

CLAIMS_FILE = "claims.json"
# At most so long until the next look, whatever the clocks do meanwhile.
_LONGEST_NAP_S = 5.0
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class _Open:
    """A fire that has not come to its end."""

    key: str
    token: datetime
    version: str


class LocalSchedules:
    """Looks at each schedule at the beginning of each minute of the server's time."""

    def __init__(
        self,
        folder: Path,
        *,
        pinned: Callable[[], Pinned],
        work: Work,
        gate: Gate,
        clock: ServerClock,
        local_zone: Callable[[], str] = facts.local_zone,
    ) -> None:
        """Read what is on disk. Where the claims are damaged nothing is fired from here."""
        self._pinned, self._work, self._gate, self._clock = pinned, work, gate, clock
        self._local_zone = local_zone
        self._bundle = BundleFile(folder, pinned=pinned())
        self._claims = _read_claims(folder / CLAIMS_FILE)
        self._lock = threading.RLock()
        self._open: dict[str, _Open] = {}
        self._looked_at: datetime | None = None
        work.tell_results_to(self._note_end)

    @property
    def etag(self) -> str:
        """Which bundle is here; empty before the first."""
        return self._bundle.current.etag

    def adopt(self, values: list[object]) -> None:
        """Take a new bundle, all of it or none. Raises OSError when the disk refuses."""
        with self._lock:
            try:
                taken = self._bundle.replace(values, pinned=self._pinned())
            except bundle.BundleError as error:
                logger.error("the server's schedules are not taken: %s", error)
                return
            if self._claims is not None:
                self._claims.keep_only({schedule.key for schedule in taken.schedules})
            self._looked_at = None
        self._gate.ring()

    def step(self) -> float:
        """Look, when a new minute has begun; the seconds after which to call again."""
        now = self._clock.now()
        if now is None or self._claims is None:
            return _LONGEST_NAP_S
        if self._gate.forbids(now, override_freeze=True) is not None:
            return _LONGEST_NAP_S
        minute = now.replace(second=0, microsecond=0)
        with self._lock:
            if self._looked_at is None or minute > self._looked_at or now < self._looked_at:
                self._looked_at = minute
                self._look(self._claims, now)
        return min(_LONGEST_NAP_S, (minute + _MINUTE - now).total_seconds())

    def _look(self, claims: ClaimBook, now: datetime) -> None:
        local = zone(self._local_zone())
        for schedule in self._bundle.current.schedules:
            with contained("a local schedule failed", schedule=schedule.manifest.id):
                self._look_at(schedule, claims, now, local)

    def _look_at(
        self, schedule: LocalSchedule, claims: ClaimBook, now: datetime, local: ZoneInfo
    ) -> None:
        claim = claims.get(schedule.key)
        if claim.looked_at is None:
            # Nothing of it was missed before it came.
            claim = replace(claim, looked_at=now)
            claims.put(schedule.key, claim)
        verdict = local_rules.judge(
            schedule,
            claim,
            now=now,
            local=local,
            freeze=self._gate.freeze,
            is_alive=self._is_alive(schedule.key),
            agent_id=self._pinned().agent_id,
        )
        match verdict:
            case local_rules.Fire():
                self._fire(schedule, claims, claim, verdict, now)
            case local_rules.Rest(reason, datetime() as looked_at):
                logger.debug("schedule %s: %s", schedule.manifest.id, reason)
                claims.put(schedule.key, replace(claim, looked_at=looked_at))
            case local_rules.Rest(reason):
                logger.debug("schedule %s: %s", schedule.manifest.id, reason)

    def _fire(
        self,
        schedule: LocalSchedule,
        claims: ClaimBook,
        claim: Claim,
        fire: local_rules.Fire,
        now: datetime,
    ) -> None:
        job = schedule.job
        taken = take(
            replace(claim, looked_at=max(fire.nominal, claim.looked_at or fire.nominal)),
            schedule.manifest.when,
            version=job.version if job else "",
            now=now,
            ttl=fire.ttl,
            is_alive=self._is_alive(schedule.key),
        )
        if taken is None or job is None:
            return
        # On disk before the run: an agent that dies now does not fire the same time again.
        claims.put(schedule.key, taken.claim)
        command = _command(schedule, job, fire, now=now, pinned=self._pinned())
        self._open[command.id] = _Open(schedule.key, taken.token, job.version)
        if not self._work.accept(command):
            del self._open[command.id]

    def _is_alive(self, key: str) -> bool:
        return any(
            fire.key == key and self._work.holds(command) for command, fire in self._open.items()
        )

    def _note_end(self, result: Result) -> None:
        with self._lock, contained("a local success could not be kept", command=result.command):
            fire = self._open.pop(result.command, None)
            now = self._clock.now()
            if fire is not None and now is not None and self._claims is not None:
                claim = self._claims.get(fire.key)
                ended = finish(claim, fire.token, result.outcome, version=fire.version, now=now)
                self._claims.put(fire.key, ended)


def _read_claims(path: Path) -> ClaimBook | None:
    try:
        return ClaimBook(path)
    except state.StateError as error:
        # Without them nobody knows what has run: better nothing than all of it again.
        logger.error("no schedule is fired from here: %s", error)
        return None


def _command(
    schedule: LocalSchedule,
    job: JobManifest,
    fire: local_rules.Fire,
    *,
    now: datetime,
    pinned: Pinned,
) -> Command:
    manifest, execute = schedule.manifest, job.execute
    retry = manifest.retry
    script = Script(
        shell=execute.shell.value,
        text=execute.script,
        sha256=hashlib.sha256(execute.script.encode()).hexdigest(),
        timeout_s=max(1, execute.timeout_seconds),
        run_as=execute.run_as.value,
        cwd=execute.cwd,
        params=param_values(execute.params, dict(manifest.params)),
        max_output=execute.max_output,
    )
    return Command(
        id=str(uuid.uuid4()),
        agent_id=pinned.agent_id,
        server_id=pinned.server_id,
        server_epoch=0,
        seq=0,
        job=job.id,
        version=job.version,
        script=script,
        issued_at=now,
        deadline_at=fire.deadline_at,
        start_after=fire.start_after,
        retry=Retry(retry.max, retry.backoff_seconds) if retry else Retry(),
        local={
            "schedule": manifest.id,
            "job": job.id,
            "version": job.version,
            "execute_sha256": schedule.execute_sha256,
            "nominal_at": fire.nominal.isoformat(),
        },
    )
