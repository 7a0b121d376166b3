"""One row of everything that the scheduler's pages show, with any words in it."""

from dataclasses import dataclass
from datetime import UTC, datetime

from django.urls import reverse

from scheduler.models import AuditEntry, Queue, Run, Runner, Task
from scheduler.public import Actor, record_act, request
from scheduler.rules.states import TaskState
from tests.scheduler.make import make_runner

NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
MODELS = ("task", "run", "runner", "queue", "auditentry")


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that pages are about."""

    task: Task
    ended: Task
    quarantined: Task
    run: Run
    runner: Runner
    queue: Queue
    auditentry: AuditEntry


def make_rows(words: str = "plain words") -> Rows:
    """A waiting and recurring task and what belongs to it, with `words` wherever they may be."""
    first = Task.objects.get(pk=request("demo", key="first", input={words: [words]}))
    task = request(
        "demo", key="nightly", cron="20 4 * * *", tz="Europe/Budapest", depends_on=[first.pk]
    )
    Task.objects.filter(pk=task).update(
        key=words[:500], cron_override="0 5 * * *", input={words: words}, last_error=words,
        result=[words], queue=words[:100],
    )  # fmt: skip
    ended = Task.objects.create(
        kind=words[:200], key=words[:500], state=TaskState.FAILED, reason="retries used up",
        ended_at=NOW, last_error=words, created_at=NOW, updated_at=NOW,
    )  # fmt: skip
    quarantined = Task.objects.create(
        kind="demo", state=TaskState.QUARANTINED, due_at=NOW, reason="unusable cron", key="q",
        cron=words[:500], created_at=NOW, updated_at=NOW,
    )  # fmt: skip
    run = Run.objects.create(
        task_id=task, kind=words[:200], key=words[:500], lease_token=1, attempt=1,
        outcome="failed", started_at=NOW, ended_at=NOW, runner_name=words[:200], error=words,
        trace=words, input={words: words}, result=words,
    )  # fmt: skip
    runner = make_runner(words[:200], host=words[:255], queues=[words])
    queue = Queue.objects.create(name=words[:100], paused=True)
    record_act(
        Actor("user", words, address=words[:64]), words[:100], object_kind=words[:50],
        object_id=words[:200], before={words: words, "n": 1}, after={words: "", "n": [words]},
        reason=words, now=NOW,
    )  # fmt: skip
    return Rows(
        task=Task.objects.get(pk=task),
        ended=ended,
        quarantined=quarantined,
        run=run,
        runner=runner,
        queue=queue,
        auditentry=AuditEntry.objects.get(),
    )


def page(model: str, name: str, *args: object) -> str:
    """The address of a page of a model."""
    return reverse(f"admin:scheduler_{model}_{name}", args=args)


def addresses(rows: Rows) -> dict[str, str]:
    """Every page that shows something, by its name."""
    found = {f"{model} list": page(model, "changelist") for model in MODELS}
    found |= {f"{model} page": page(model, "change", getattr(rows, model).pk) for model in MODELS}
    found |= {
        "ended": page("task", "change", rows.ended.pk),
        "quarantined": page("task", "change", rows.quarantined.pk),
        "live": page("task", "live", rows.task.pk),
        "pause": page("queue", "add"),
        "health": page("queue", "health"),
        "health live": page("queue", "health_live"),
    }
    for verb in ("run-now", "retry", "release", "cron", "reset-cron", "due", "retries", "cancel"):
        found[verb] = page("task", verb, rows.task.pk)
    for verb in ("pause", "resume", "limit"):
        found[f"queue {verb}"] = page("queue", verb, rows.queue.pk)
    return found
