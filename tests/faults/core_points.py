"""The core's points of the fault model, each mapped to a real place in it.

A point that is no statement names its seam instead: a call of the runner, or a moment in a body.
`keeps` says whether the act shows afterwards, as `PROBES` looks for it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from django.db.models import Q

from scheduler.engine.intake import Intake
from scheduler.engine.loop import Loop
from scheduler.models import Queue, Run, Task
from scheduler.rules.states import Outcome
from tests.faults.places import Place, When

BEFORE, AFTER, COMMIT, COMMITTED = When.BEFORE, When.AFTER, When.COMMIT, When.COMMITTED
REGISTER = "INSERT INTO scheduler_task "
PROMOTE = "UPDATE scheduler_task SET ready"
COUNT_CLAIMS = "UPDATE scheduler_queue SET claims"
CLAIM = "SET state = 'running'"
HISTORY = "INSERT INTO scheduler_run "
DROP_EDGES = "DELETE FROM scheduler_dependency"
RELEASE = "UPDATE scheduler_task SET waits_for"
RETRY = "retry_count = %s"
NEXT = "WITH due(task"
BEAT = "UPDATE scheduler_task SET beat"
LEASES = "scheduler_task.beat AS beat, scheduler_task.runner_id"
PUT_BACK = "UPDATE scheduler_task SET body_started"


def _one(name: str, **facts: object) -> bool:
    return Task.objects.filter(key=name, **facts).exists()


PROBES: Mapping[str, Callable[[], bool]] = {
    "nothing": lambda: not Run.objects.exists() and not Task.objects.filter(runs__gt=0).exists(),
    "registered": lambda: _one("declared"),
    "promoted": lambda: Task.objects.filter(Q(ready=True) | Q(runs=1), key="timed").exists(),
    "counted": lambda: Queue.objects.filter(claims__gt=0).exists(),
    "claimed": lambda: Task.objects.filter(state="running").exists(),
    "ended": Run.objects.exists,
    "released": lambda: _one("after", waits_for=0),
    "retried": lambda: _one("flaky", retry_count=1),
    "moved on": lambda: _one("hourly", runs=1, state="pending"),
    "beaten": lambda: Task.objects.filter(key="hold", beat__gt=1).exists(),
    "freed": lambda: Run.objects.filter(key__startswith="lost", outcome=Outcome.CRASHED).exists(),
    "quarantined": lambda: _one("poison", state="quarantined"),
    "given back": lambda: _one("hold", state="pending"),
}


# A function, and whether the process dies before or after its next call.
SEAMS: Mapping[str, tuple[type, str, bool]] = {
    "step": (Loop, "step", False),
    "taken": (Intake, "_claim", True),
}


@dataclass(frozen=True, slots=True)
class Point:
    """A point by its name, where it is, and whether its act is there after a kill at it."""

    name: str
    probe: str
    keeps: bool
    place: Place | None = None
    # The tasks that it is about, beside `chain`: one of GROUPS.
    about: str = ""
    # One of SEAMS, or where in the body of `first`: before, mid, after.
    seam: str = ""


POINTS = [
    Point("tick.begin", "nothing", keeps=True, seam="step"),
    Point("tick.after_due", "promoted", keeps=True, about="later", place=Place(PROMOTE, COMMITTED)),
    # The first occurrence of a recurring task is written when a runner registers it.
    Point(
        "occurrence.in_txn",
        "registered",
        keeps=False,
        about="declared",
        place=Place(REGISTER, COMMIT),
    ),
    Point(
        "occurrence.committed",
        "registered",
        keeps=True,
        about="declared",
        place=Place(REGISTER, COMMITTED),
    ),
    Point("claim.before", "claimed", keeps=False, place=Place(CLAIM, BEFORE)),
    # A claim of a limited queue; all others are one statement.
    Point("claim.in_txn", "counted", keeps=False, about="limit", place=Place(COUNT_CLAIMS, COMMIT)),
    # SQLite commits it when its rows have been read, which is after the statement returned.
    Point("claim.committed", "claimed", keeps=True, seam="taken"),
    Point("run.before_effect", "claimed", keeps=True, seam="before"),
    Point("run.mid_effect", "claimed", keeps=True, seam="mid"),
    Point("run.after_effect", "claimed", keeps=True, seam="after"),
    Point("finish.before", "ended", keeps=False, place=Place(HISTORY, BEFORE)),
    Point("finish.in_txn", "ended", keeps=False, place=Place(HISTORY, COMMIT)),
    Point("finish.committed", "ended", keeps=True, place=Place(HISTORY, COMMITTED)),
    Point("dependents.before", "released", keeps=False, place=Place(DROP_EDGES, BEFORE)),
    Point("dependents.in_txn", "released", keeps=False, place=Place(RELEASE, COMMIT)),
    Point("dependents.committed", "released", keeps=True, place=Place(RELEASE, COMMITTED)),
    Point("retry.in_txn", "retried", keeps=False, about="retry", place=Place(RETRY, COMMIT)),
    Point("retry.committed", "retried", keeps=True, about="retry", place=Place(RETRY, COMMITTED)),
    Point("cron_next.in_txn", "moved on", keeps=False, about="cron", place=Place(NEXT, COMMIT)),
    Point("beat.before", "beaten", keeps=False, place=Place(BEAT, BEFORE), about="hold"),
    # One statement, so that it is committed when it returns.
    Point("beat.in_txn", "beaten", keeps=True, place=Place(BEAT, AFTER), about="hold"),
    Point("reap.scan", "freed", keeps=False, place=Place(LEASES, AFTER), about="lost"),
    Point("reap.in_txn", "freed", keeps=False, place=Place(HISTORY, COMMIT), about="lost"),
    Point("reap.committed", "freed", keeps=True, place=Place(HISTORY, COMMITTED), about="lost"),
    Point(
        "quarantine.in_txn",
        "quarantined",
        keeps=False,
        place=Place(HISTORY, COMMIT),
        about="poison",
    ),
    Point(
        "shutdown.drain",
        "given back",
        keeps=False,
        place=Place(PUT_BACK, COMMIT),
        about="hold",
    ),
]
