"""How the queue is: what was seen of it, and the verdict on that."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from scheduler.rules.leases import SILENCE

# Work that is due starts within seconds as long as somebody takes it.
LATE = timedelta(seconds=60)
# No kind says how long it takes; a body that runs for longer deserves a look.
HUNG_AFTER = timedelta(hours=1)
# A runner that fell silent is news for so long, unless its successor has come.
NEWS = timedelta(hours=1)


class Verdict(StrEnum):
    """How the queue is, in one word."""

    OK = "ok"
    # It works, and somebody should look.
    DEGRADED = "degraded"
    # Nobody takes tasks.
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class TaskName:
    """A task, as people and programs name it."""

    id: int
    kind: str
    key: str | None


@dataclass(frozen=True, slots=True)
class Wait:
    """One task waits for another, which is in this state."""

    task: TaskName
    dependency: TaskName
    dependency_state: str


@dataclass(frozen=True, slots=True)
class Held:
    """A task under a lease: who has it, how long the body has run, how long nobody beat."""

    task: TaskName
    runner: str
    running_s: float
    silent_s: float
    # False while it waits for a thread, and when only its hook is left.
    in_body: bool


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A task that is kept from running until a person releases it."""

    task: TaskName
    reason: str
    error: str


@dataclass(frozen=True, slots=True)
class SeenRunner:
    """A runner that has not signed off; its times are on the database's clock."""

    id: int
    name: str
    host: str
    workers: int
    queues: Sequence[str] | None
    started_at: datetime
    last_tick_at: datetime
    silent_s: float

    @property
    def is_alive(self) -> bool:
        """Whether it was heard of lately."""
        return self.silent_s <= SILENCE.total_seconds()


@dataclass(frozen=True, slots=True)
class QueueHealth:
    """The queue at one moment. Lists are bounded; the counts named in `capped` are only begun."""

    at: datetime
    verdict: Verdict
    reasons: Sequence[str]
    # `scheduled` has a time, come or yet to come; `due` are those of them whose time has come.
    waiting: int
    scheduled: int
    running: int
    dependents: int
    stuck_tasks: Sequence[TaskName]
    tasks_with_missing_deps: Sequence[Wait]
    due: int
    quarantined: int
    failed_runs_24h: int
    capped: Sequence[str]
    by_state: Mapping[str, int]
    by_kind: Mapping[str, Mapping[str, int]]
    oldest_due_age_s: float | None
    expired_leases: Sequence[Held]
    hung: Sequence[Held]
    quarantined_tasks: Sequence[Quarantined]
    waits: Sequence[Wait]
    # Each as the ids of its tasks.
    cycles: Sequence[Sequence[int]]
    unknown_kinds: Sequence[str]
    paused_queues: Sequence[str]
    runners: Sequence[SeenRunner]


@dataclass(frozen=True, slots=True)
class Signs:
    """What the verdict is about."""

    runners: Sequence[SeenRunner] = ()
    oldest_due_age_s: float | None = None
    unknown_kinds: Sequence[str] = ()
    # How many of each there are; what is 0 is well.
    troubles: Mapping[str, int] = field(default_factory=dict)


def judge(signs: Signs) -> tuple[Verdict, tuple[str, ...]]:
    """Return the verdict and the sentences that say why, the gravest first."""
    reasons = tuple(_reasons(signs))
    if not any(runner.is_alive for runner in signs.runners):
        return Verdict.DOWN, ("no runner takes tasks", *reasons)
    return (Verdict.DEGRADED if reasons else Verdict.OK), reasons


def _reasons(signs: Signs) -> Iterator[str]:
    for runner in missing(signs.runners):
        yield f"runner {runner.name} has been silent for {runner.silent_s:.0f} s"
    age = signs.oldest_due_age_s
    if age is not None and age > LATE.total_seconds():
        yield f"the oldest due task has waited for {age:.0f} s"
    for what, count in signs.troubles.items():
        if count:
            yield f"{what}: {count}"
    if signs.unknown_kinds:
        yield f"no handler for {', '.join(signs.unknown_kinds)}"


def missing(runners: Sequence[SeenRunner]) -> list[SeenRunner]:
    """Return the runners that fell silent lately and have no successor of their name."""
    return [
        runner
        for runner in runners
        if not runner.is_alive
        and runner.silent_s <= NEWS.total_seconds()
        and not any(
            other.is_alive and other.name == runner.name and other.started_at > runner.started_at
            for other in runners
        )
    ]


def document(health: QueueHealth) -> dict[str, object]:
    """Return the report as plain values, times as datetimes, for JSON."""
    found: dict[str, object] = asdict(health)
    found["runners"] = [{**asdict(one), "is_alive": one.is_alive} for one in health.runners]
    return found
