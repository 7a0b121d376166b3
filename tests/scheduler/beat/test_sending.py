"""The kind `celery.send`: real brokers where they answer, and one that is away."""

import os
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from scheduler import public
from scheduler.beat import sending
from scheduler.models import Run, Task
from scheduler.rules.states import Outcome
from tests.clock import ManualClock
from tests.scheduler.beat.brokers import queue, require_broker
from tests.scheduler.make import Worker, outcomes_of, reload

pytestmark = pytest.mark.django_db
# Nothing listens on port 9.
AWAY = "redis://127.0.0.1:9/0"
MINUTE = timedelta(minutes=1)


class Sent:
    """Stands for Celery's application where only our side is tested."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, dict[str, Any]]] = []
        self.error: Exception | None = None

    def send_task(self, name: str, **options: Any) -> None:
        if self.error is not None:
            raise self.error
        self.messages.append((name, options))


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch, clock: ManualClock) -> Worker:
    sending.register()
    monkeypatch.setattr(timezone, "now", clock)
    return Worker(clock)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    found = Sent()
    monkeypatch.setattr(sending, "sender", lambda url: found)
    return found


def ask(message: object, **options: Any) -> int:
    return public.request(sending.KIND, key="nightly", input=message, **options)


@pytest.mark.parametrize("broker", ["redis", "rabbitmq"])
def test_a_message_reaches_the_broker(worker: Worker, settings: Any, broker: str) -> None:
    settings.CELERY_BROKER_URL = require_broker(broker)
    name = f"kanade-test-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}-{os.getpid()}"
    message = {
        "task": "app.tasks.go",
        "args": ["a", 1],
        "kwargs": {"b": None},
        "options": {"queue": name, "priority": 3, "headers": {"x": "y"}, "expires": 3600},
    }

    with queue(settings.CELERY_BROKER_URL, name) as messages:
        task = ask(message)
        worker.run_due()
        headers, body = messages.take()
        assert messages.is_empty

    assert (headers["task"], headers["x"], headers["eta"]) == ("app.tasks.go", "y", None)
    assert headers["expires"] is not None
    assert body[:2] == [["a", 1], {"b": None}]
    assert reload(task).result == {"sent": headers["id"]}


def test_a_broker_that_is_away_is_tried_again(worker: Worker, settings: Any) -> None:
    settings.CELERY_BROKER_URL = AWAY
    task = ask({"task": "app.tasks.go"}, retry=sending.RETRY)

    worker.run_due()

    row = reload(task)
    assert (row.state, row.retry_count) == ("pending", 1)
    assert row.due_at == worker.clock.now + timedelta(seconds=5)
    assert "OperationalError" in row.last_error


def test_without_a_broker_the_error_says_what_to_set(worker: Worker, settings: Any) -> None:
    settings.CELERY_BROKER_URL = ""
    task = ask({"task": "app.tasks.go"}, retry=sending.RETRY)

    worker.run_due()

    assert "CELERY_BROKER_URL is not set; write redis://HOST" in reload(task).last_error
    assert reload(task).state == "pending"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        pytest.param(None, "names no task", id="nothing"),
        pytest.param({"task": 1}, "names no task", id="no name"),
        pytest.param({"task": "t", "options": {"eta": 1}}, "unknown options", id="an eta"),
        pytest.param({"task": "t", "options": ["x"]}, "options are names", id="options listed"),
        pytest.param({"task": "t", "args": "x"}, "args are a list", id="args no list"),
        pytest.param({"task": "t", "kwargs": [1]}, "kwargs are names", id="kwargs listed"),
        pytest.param({"task": "t", "until": "noon"}, "until is a time", id="until no time"),
        pytest.param({"task": "t", "until": "2026-01-01"}, "until is a time", id="until no zone"),
    ],
)
def test_a_broken_message_fails_for_good_and_is_not_sent(
    worker: Worker, sent: Sent, message: object, said: str
) -> None:
    task = ask(message, retry=sending.RETRY)

    worker.run_due()

    assert reload(task).state == "failed"
    assert said in reload(task).last_error
    assert sent.messages == []


def test_each_try_of_one_occurrence_has_the_same_id(worker: Worker, sent: Sent) -> None:
    task = ask({"task": "t"}, cron="0 * * * *", retry=sending.RETRY)
    worker.clock.advance(hours=1)
    worker.run_due()
    # As if the runner had died before it wrote the end.
    first = sent.messages[0][1]["task_id"]
    Task.objects.filter(pk=task).update(
        due_at=worker.clock.now, ready=True, occurrence_at=worker.clock.now
    )
    worker.run_due()
    worker.clock.advance(hours=1)
    worker.run_due()

    second, third = (options["task_id"] for _, options in sent.messages[1:])
    assert second == first
    assert third != first


def test_an_interval_goes_on_along_its_grid(worker: Worker, sent: Sent) -> None:
    anchor = worker.clock.now + MINUTE
    message = {"task": "t", "every": 60, "anchor": anchor.isoformat()}
    task = ask(message, at=anchor, retry=sending.RETRY)

    dues = []
    for seconds in (60, 60, 70, 50, 600):
        worker.clock.advance(seconds)
        assert worker.run_due() == 1
        dues.append(reload(task).due_at)

    grid = [anchor + number * MINUTE for number in (1, 2, 3, 4, 14)]
    assert dues == grid
    assert len(sent.messages) == 5


def test_an_interval_survives_a_message_that_could_not_be_sent_at_all(
    worker: Worker, sent: Sent
) -> None:
    message = {"task": "t", "every": 60, "anchor": worker.clock.now.isoformat()}
    ask(message)
    sent.error = public.PermanentError("refused")

    worker.run_due_and_hooks()

    (live,) = Task.objects.live()
    assert (live.key, live.input) == ("nightly", message)
    assert live.due_at == worker.clock.now + MINUTE


def test_a_cancelled_interval_does_not_go_on(worker: Worker, sent: Sent) -> None:
    message = {"task": "t", "every": 60, "anchor": worker.clock.now.isoformat()}
    task = ask(message)
    held = worker.claim_one()
    public.cancel(task)

    sending.body(held.fire)
    worker.end(held)

    assert reload(task).state == "cancelled"
    assert not Task.objects.live().exists()


def test_a_newer_message_is_not_overwritten_by_the_old_one(worker: Worker, sent: Sent) -> None:
    old = {"task": "old", "every": 60, "anchor": worker.clock.now.isoformat()}
    task = ask(old)
    held = worker.claim_one()
    ask({"task": "new"}, at=worker.clock.now + 5 * MINUTE)

    sending.body(held.fire)
    worker.end(held)

    row = reload(task)
    assert (row.input, row.due_at) == ({"task": "new"}, worker.clock.now + 5 * MINUTE)


def test_an_expired_recurrence_sends_nothing_and_ends(worker: Worker, sent: Sent) -> None:
    until = worker.clock.now + 90 * MINUTE
    task = ask({"task": "t", "until": until.isoformat()}, cron="0 * * * *")

    worker.clock.advance(hours=1)
    worker.run_due()
    assert sent.messages[0][1]["expires"] == until
    worker.clock.advance(hours=1)
    worker.run_due()

    assert len(sent.messages) == 1
    assert reload(task).state == "cancelled"
    last = Run.objects.latest("pk")
    assert last.result == {"sent": None, "why": f"expired at {until.isoformat()}"}


def test_a_row_that_is_enabled_again_is_beats(worker: Worker, sent: Sent) -> None:
    schedule = IntervalSchedule.objects.create(every=1, period="minutes")
    row = PeriodicTask.objects.create(name="nightly", task="t", interval=schedule)
    task = ask({"task": "t"}, cron="0 * * * *")

    worker.clock.advance(hours=1)
    worker.run_due()
    assert sent.messages == []
    row.enabled = False
    row.save()
    worker.clock.advance(hours=1)
    worker.run_due()

    assert len(sent.messages) == 1
    assert outcomes_of(task) == [Outcome.SUCCEEDED] * 2
