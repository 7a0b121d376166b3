"""What has to be true of the core's tables at any moment, and once everything was done."""

from collections import Counter
from collections.abc import Iterator, Sequence

from django.db.models import Count, F, Q

from scheduler.models import Dependency, Run, Task
from scheduler.rules.states import Outcome

LIVE = ("pending", "running", "quarantined")
# Ends of a claim whose body had begun, or was handed to a thread.
RAN = (Outcome.SUCCEEDED, Outcome.RETRYING, Outcome.FAILED, Outcome.CRASHED)


def violations() -> dict[str, list[object]]:
    """What the tables say and may never say, not even right after a kill; empty if all is well."""
    edges = Dependency.objects.all()
    found = {
        "waits for something that is over": edges.exclude(dependency__state__in=LIVE),
        "an edge of a task that is over": edges.exclude(task__state__in=LIVE),
        "counts its edges wrongly": Task.objects.annotate(edges=Count("waits_on")).exclude(
            waits_for=F("edges")
        ),
        "finished without history": Task.objects.filter(state="finished").exclude(
            pk__in=Run.objects.filter(outcome=Outcome.SUCCEEDED).values("task_id")
        ),
        "runs under a lease whose end is written": Task.objects.filter(
            state="running", pk__in=_ended_by_its_lease()
        ),
        "one occurrence succeeded twice": Run.objects.filter(
            outcome=Outcome.SUCCEEDED, occurrence_at__isnull=False
        )
        .values("task_id", "occurrence_at")
        .annotate(times=Count("pk"))
        .filter(times__gt=1),
        "a run of another task's name": [
            run.pk
            for run in Run.objects.select_related("task")
            if (run.kind, run.key) != (run.task.kind, run.task.key)
        ],
        "ended before it began": Run.objects.filter(ended_at__lt=F("started_at")),
        "attempts and history differ": list(_miscounted()),
    }
    return {name: list(rows) for name, rows in found.items() if list(rows)}


def _ended_by_its_lease() -> list[int]:
    return list(
        Run.objects.filter(task__lease_token=F("lease_token")).values_list("task_id", flat=True)
    )


def _miscounted() -> Iterator[object]:
    """Every claim is counted once: by the run that ended it, or by the task that is running."""
    runs = Counter(Run.objects.filter(outcome__in=RAN).values_list("task_id", flat=True))
    for task in Task.objects.all():
        now = 1 if task.state == "running" else 0
        if task.runs != runs[task.pk] + now:
            yield task.key, task.runs, runs[task.pk], task.state


def unfinished(expected: dict[str, str]) -> dict[str, str]:
    """Tasks, by key, that are not in the state that a recovery has to bring them to."""
    states = dict(Task.objects.values_list("key", "state"))
    return {
        str(key): f"{states.get(key)} instead of {expected.get(str(key))}"
        for key in states.keys() | expected.keys()
        if states.get(key) != expected.get(str(key))
    }


def held() -> list[object]:
    """Leases that nobody freed, and hooks that nobody called."""
    return list(Task.objects.filter(Q(state="running") | Q(hook_run__isnull=False)).values("key"))


def overlaps(lines: Sequence[str], dead: int | None) -> list[str]:
    """Bodies of one key, or of the narrow queue, that were inside at the same time.

    `dead` is the process that was killed: what it began, it need not have ended.
    """
    inside: dict[str, str] = {}
    found = []
    for line in lines:
        word, key = line.split()[:2]
        room = "narrow" if key.startswith("narrow") else key
        if word == "begin":
            if room in inside and int(inside[room].split()[3]) != dead:
                found.append(f"{inside[room]} | {line}")
            inside[room] = line
        elif word == "end":
            inside.pop(room, None)
    return found
