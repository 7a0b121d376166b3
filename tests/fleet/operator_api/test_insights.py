"""How is a schedule, how far has it come, and why does it not fire: answered over HTTP."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from fleet.models import Agent, Evaluation, Freeze, Schedule
from fleet.rules.command_states import CommandState
from tests.fleet.make import (
    make_agent,
    make_command,
    make_execution,
    make_group,
    make_job,
    make_schedule,
    make_schedule_agent,
)
from tests.fleet.operator_api.callers import Caller, errors, make_user, ok

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer() -> Caller:
    return Caller(make_user("viewer"))


@pytest.fixture
def schedule() -> Schedule:
    """A reconcile schedule of one PC that is heard right now."""
    agent = make_agent("pc-1", last_seen_at=timezone.now())
    found = make_schedule("nightly", job=make_job("patch"))
    make_schedule_agent(found, agent, due_at=timezone.now() - timedelta(minutes=1))
    return found


def gates(body: Any) -> dict[str, bool]:
    return {gate["gate"]: gate["open"] for gate in body["gates"]}


def test_a_status_tells_what_the_ticks_decide_and_why(viewer: Caller, schedule: Schedule) -> None:
    Evaluation.objects.create(
        schedule=schedule, since=timezone.now(), reason="frozen", detail="year end"
    )

    body = ok(viewer.get("schedules/nightly/status/"))

    assert body["enabled"] is True
    assert (body["evaluation"]["reason"], body["evaluation"]["detail"]) == ("frozen", "year end")
    assert body["last_24h"] == {"ok": 0, "failed": 0}
    assert body["last_run"] is None


def test_a_calendars_status_tells_its_next_fire(viewer: Caller) -> None:
    make_schedule("daily", when={"calendar": {"at": "09:00"}}, tz="utc")

    status = ok(viewer.get("schedules/daily/status/"))
    preview = ok(viewer.get("schedules/daily/preview/?count=1"))

    assert status["next_run"] == preview["fires"][0]["utc"]


def test_a_list_gives_statuses_in_a_fixed_number_of_queries(
    viewer: Caller, django_assert_num_queries: Any
) -> None:
    for _ in range(4):
        make_schedule()
    viewer.get("schedules/")

    for size in (1, 4):
        # The token, rights (two), the page; and of all its rows together four more.
        with django_assert_num_queries(8):
            rows = ok(viewer.get(f"schedules/?page_size={size}&include=status"))["results"]
        assert rows[0]["status"]["enabled"] is True


def test_coverage_counts_every_pc_and_lists_them_by_name(viewer: Caller) -> None:
    make_group("office", make_agent("b"), make_agent("a"))
    schedule = make_schedule("nightly", target={"groups": ["office"]})
    command = make_command(
        Agent.objects.get(name="b"), job=schedule.job, state=CommandState.STARTED
    )
    assert command.job == schedule.job

    body = ok(viewer.get("schedules/nightly/coverage/"))

    assert {key: body[key] for key in ("total", "ok", "failed", "running", "pending")} == {
        "total": 2,
        "ok": 0,
        "failed": 0,
        "running": 1,
        "pending": 1,
    }
    assert [(pc["pc"], pc["state"]) for pc in body["pcs"]["results"]] == [
        ("a", "pending"),
        ("b", "running"),
    ]


def test_the_pcs_of_a_coverage_are_narrowed_and_paged(viewer: Caller) -> None:
    for name in ("a", "b", "c"):
        make_agent(name)
    make_schedule("nightly")
    address = "schedules/nightly/coverage/"

    first = ok(viewer.get(f"{address}?state=pending&page_size=2"))["pcs"]
    second = ok(viewer.get(first["next"].removeprefix("http://testserver")))["pcs"]

    assert [pc["pc"] for pc in first["results"] + second["results"]] == ["a", "b", "c"]
    assert ok(viewer.get(f"{address}?state=ok"))["pcs"]["results"] == []
    assert list(errors(viewer.get(f"{address}?state=fine"))) == ["state"]


def test_an_explanation_lists_every_closed_gate_with_its_values(
    viewer: Caller, schedule: Schedule
) -> None:
    Freeze.objects.filter(pk=1).update(is_set=True, reason="year end")
    schedule.enabled = False
    schedule.manifest = schedule.manifest | {"enabled": False}
    schedule.save()

    body = ok(viewer.get("schedules/nightly/explain/"))

    assert (body["tense"], body["reason"]) == ("now", "frozen")
    assert "year end" in body["words"]
    assert gates(body)["frozen"] is False
    assert gates(body)["disabled"] is False
    assert gates(body)["skip date"] is True


def test_an_explanation_tells_about_one_pc(viewer: Caller, schedule: Schedule) -> None:
    execution = make_execution(schedule.job)
    make_command(Agent.objects.get(), execution=execution, created_at=timezone.now())

    body = ok(viewer.get("schedules/nightly/explain/?agent=PC-1"))

    assert (body["agent"]["pc"], body["agent"]["reason"]) == ("pc-1", "in flight")
    assert [command["state"] for command in body["commands"]] == ["queued"]


def test_a_pc_that_is_not_meant_is_said_to_be(viewer: Caller, schedule: Schedule) -> None:
    make_agent("other")

    body = ok(viewer.get("schedules/nightly/explain/?agent=other"))

    assert body["agent"]["reason"] is None
    assert "does not mean it" in body["agent"]["words"]


def test_the_past_is_what_was_kept(viewer: Caller, schedule: Schedule) -> None:
    now = timezone.now()
    Evaluation.objects.create(
        schedule=schedule,
        since=now - timedelta(hours=3),
        until=now - timedelta(hours=1),
        reason="outside window",
        detail="22:00-05:00",
    )
    then = (now - timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    before = (now - timedelta(hours=9)).strftime("%Y-%m-%dT%H:%M:%SZ")

    kept = ok(viewer.get(f"schedules/nightly/explain/?at={then}"))
    nothing = ok(viewer.get(f"schedules/nightly/explain/?at={before}"))

    assert (kept["tense"], kept["reason"], kept["detail"]) == (
        "past",
        "outside window",
        "22:00-05:00",
    )
    assert (nothing["reason"], nothing["words"]) == (None, "nothing is kept about that time")


def test_the_future_says_that_it_is_todays_facts(viewer: Caller, schedule: Schedule) -> None:
    later = (timezone.now() + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")

    body = ok(viewer.get(f"schedules/nightly/explain/?at={later}"))

    assert body["tense"] == "future"
    assert any("what is known now" in note for note in body["notes"])


@pytest.mark.parametrize("at", ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00"])
def test_a_time_beyond_all_calendars_is_no_fault(
    viewer: Caller, schedule: Schedule, at: str
) -> None:
    assert viewer.get(f"schedules/nightly/explain/?at={at}").status_code in {200, 400}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("agent=nobody", "agent"),
        ("agent=%00", "agent"),
        ("at=yesterday", "at"),
        ("at=2026-12-01T12:00:00", "at"),
        ("at=1066-10-14T09:00:00Z", "at"),
        ("pc=pc-1", "pc"),
    ],
)
def test_a_question_that_means_nothing_is_refused(
    viewer: Caller, schedule: Schedule, query: str, field: str
) -> None:
    answer = viewer.get(f"schedules/nightly/explain/?{query}")

    assert answer.status_code == 400
    assert list(errors(answer)) == [field]


@pytest.mark.parametrize("question", ["status", "coverage", "explain", "preview"])
def test_an_unreadable_manifest_is_no_fault_of_the_server(
    viewer: Caller, schedule: Schedule, question: str
) -> None:
    Schedule.objects.update(manifest={"id": "nightly", "when": "never"}, fingerprint="f" * 64)

    answer = viewer.get(f"schedules/nightly/{question}/")

    assert answer.status_code in {200, 409}


@pytest.mark.parametrize("question", ["status", "coverage", "explain", "preview"])
def test_questions_about_nothing_are_not_found(viewer: Caller, question: str) -> None:
    assert viewer.get(f"schedules/none/{question}/").status_code == 404
