"""The page of the queue's health says all that the report says."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from scheduler.models import Runner, Task
from scheduler.public import pause_queue, request
from scheduler.rules.states import TaskState
from tests.clock import ManualClock
from tests.scheduler.admin.conftest import Visit
from tests.scheduler.admin.rows import page
from tests.scheduler.make import Worker, make_runner

pytestmark = pytest.mark.django_db


def shown(client: Client) -> str:
    """The words of the page, without its markup and line breaks."""
    text = client.get(page("queue", "health")).content.decode()
    return " ".join(text.split())


def test_a_quiet_queue_says_so(root: Client) -> None:
    make_runner("one")

    text = shown(root)

    assert "Nothing is late, stuck or lost." in text
    assert "There are no live tasks." in text


def test_every_trouble_has_its_place(root: Client) -> None:
    clock = ManualClock(timezone.now())
    worker = Worker(clock, make_runner("busy"))
    hung = request("demo", key="hung", now=clock.now)
    worker.claim_one()
    Task.objects.filter(pk=hung).update(started_at=clock.now - timedelta(hours=2))
    lost = request("demo", key="lost", now=clock.now)
    worker.claim_one()
    beat_at = Task.objects.get(pk=lost).beat_at
    assert beat_at is not None
    Task.objects.filter(pk=lost).update(beat_at=beat_at - timedelta(seconds=90))
    first = request("demo", key="first", now=clock.now)
    request("demo", key="second", depends_on=[first], now=clock.now)
    bad = request("demo", key="bad", now=clock.now)
    Task.objects.filter(pk=bad).update(
        state=TaskState.QUARANTINED, reason="unusable cron", last_error="no such zone", ready=False
    )
    Task.objects.filter(pk=request("demo", key="stranger")).update(kind="nobody.knows")
    pause_queue("mail")
    gone = make_runner("gone")
    Runner.objects.filter(pk=gone.pk).update(last_tick_at=timezone.now() - timedelta(minutes=10))

    text = shown(root)

    for section, words in {
        "h-stands": ("degraded", "no handler for nobody.knows", "mail"),
        "h-kinds": ("demo", "nobody.knows", "quarantined"),
        "h-leases": ("lost", "busy"),
        "h-hung": ("hung", "busy", "720"),
        "h-quarantined": ("bad", "unusable cron", "no such zone"),
        "h-waits": ("second", "first", "pending"),
        "h-runners": ("busy", "alive", "gone", "silent"),
    }.items():
        part = text.split(f'aria-labelledby="{section}"')[1].split("</section>")[0]
        assert [word for word in words if word not in part] == [], section


@pytest.mark.parametrize("role", ["viewer", "nobody"])
def test_who_sees_tasks_and_runners_sees_the_page(role: str, visit: Visit) -> None:
    answer = visit(role).get(page("queue", "health"))

    assert answer.status_code == (200 if role == "viewer" else 403)


def test_the_front_page_leads_there(root: Client) -> None:
    assert page("queue", "health") in root.get("/admin/").content.decode()
