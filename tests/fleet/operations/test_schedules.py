"""Saving schedules, switching them on and off, and deleting them."""

from datetime import UTC, datetime, timedelta

import pytest

from fleet.flow.published import Change
from fleet.models import Execution, Schedule, ScheduleAgent, Shape
from fleet.operations.schedules import (
    delete_schedule,
    disable_schedule,
    enable_schedule,
    save_schedule,
    store_schedule,
)
from fleet.rules.refusals import Conflict, Invalid, NotFound
from scheduler.models import AuditEntry
from scheduler.public import Actor
from tests.fleet.make import (
    NOW,
    make_agent,
    make_execution,
    make_job,
    make_schedule_agent,
)
from tests.fleet.operations.audited import acts
from tests.fleet.rules.manifest.documents import schedule

pytestmark = pytest.mark.django_db
Asked = list[tuple[str, str | None]]
LATER = NOW + timedelta(hours=1)


def calendar(**changes: object) -> dict[str, object]:
    """Every day at 13:00 UTC, an hour after NOW."""
    return schedule(when={"calendar": {"at": "13:00"}}, tz="utc", **changes)


@pytest.fixture(autouse=True)
def inventory(asked: Asked) -> None:
    make_job("inventory")


def reasked(asked: Asked, key: int) -> list[str]:
    return [kind for kind, of in asked if of == str(key)]


def test_a_new_reconcile_schedule_is_computed_and_looked_at(alice: Actor, asked: Asked) -> None:
    found = save_schedule(schedule(), actor=alice, now=NOW)
    found.refresh_from_db()
    assert (found.slug, found.job.slug, found.shape) == ("inventory-6h", "inventory", Shape.PER_PC)
    assert (found.enabled, found.runs_on_agent, found.next_fire_at) == (True, False, None)
    assert (found.targets_dirty_at, found.look_at) == (NOW, NOW)
    assert reasked(asked, found.pk) == ["fleet.targets", "fleet.evaluate"]
    assert acts() == [("create", "schedule", "inventory-6h")]


def test_a_new_calendar_is_armed_from_now_on(alice: Actor, asked: Asked) -> None:
    found = save_schedule(calendar(), actor=alice, now=NOW)
    assert found.next_fire_at == datetime(2026, 12, 1, 13, tzinfo=UTC)
    assert (found.settled_until, found.shape) == (NOW, Shape.CALENDAR)
    assert reasked(asked, found.pk) == ["fleet.evaluate"]


def test_a_date_in_the_past_is_saved_and_never_fires(alice: Actor) -> None:
    document = schedule(when={"calendar": {"at": "2026-06-10 09:00"}})
    assert save_schedule(document, actor=alice, now=NOW).next_fire_at is None


def test_saving_what_is_stored_asks_for_nothing(alice: Actor, asked: Asked) -> None:
    save_schedule(schedule(), actor=alice, now=NOW)
    asked.clear()
    found = store_schedule(schedule(enabled=True), actor=alice, now=LATER)
    assert (found.change, found.row.updated_at, asked) == (Change.UNCHANGED, NOW, [])
    assert acts() == [("create", "schedule", "inventory-6h")]


def test_an_edit_that_leaves_the_timing_alone_keeps_a_fire_that_is_due(alice: Actor) -> None:
    save_schedule(calendar(), actor=alice, now=NOW)
    due = datetime(2026, 12, 1, 13, tzinfo=UTC)
    after_it = due + timedelta(seconds=30)
    found = save_schedule(calendar(description="new"), actor=alice, now=after_it)
    assert (found.next_fire_at, found.settled_until) == (due, NOW)


def test_another_timing_arms_anew(alice: Actor) -> None:
    save_schedule(calendar(), actor=alice, now=NOW)
    document = calendar() | {"when": {"calendar": {"at": "12:30"}}}
    found = save_schedule(document, actor=alice, now=LATER)
    assert found.next_fire_at == datetime(2026, 12, 2, 12, 30, tzinfo=UTC)
    assert found.settled_until == LATER


def test_another_zone_arms_anew(alice: Actor) -> None:
    save_schedule(calendar(), actor=alice, now=NOW)
    found = save_schedule(calendar() | {"tz": "Asia/Tokyo"}, actor=alice, now=NOW)
    assert found.next_fire_at == datetime(2026, 12, 2, 4, tzinfo=UTC)


@pytest.mark.parametrize(
    ("changes", "computed"),
    [
        ({"description": "x"}, False),
        ({"tags": ["x"]}, False),
        ({"constraints": {"max_concurrent": 5}}, False),
        ({"target": {"groups": ["office"]}}, True),
        ({"when": {"per_pc": {"every": "12h"}}}, True),
        ({"jitter": "10m"}, True),
        ({"on_failure": {"retry": {"max": 1, "backoff": "1m"}}}, True),
    ],
)
def test_targets_are_computed_anew_only_where_they_may_differ(
    alice: Actor, asked: Asked, changes: dict[str, object], computed: bool
) -> None:
    found = save_schedule(schedule(), actor=alice, now=NOW)
    asked.clear()
    save_schedule(schedule(**changes), actor=alice, now=LATER)
    found.refresh_from_db()
    assert (found.targets_dirty_at == LATER) is computed
    assert ("fleet.targets" in reasked(asked, found.pk)) is computed
    assert "fleet.evaluate" in reasked(asked, found.pk)


@pytest.mark.parametrize("job", [pytest.param("nope", id="6.1#19")])
def test_a_schedule_of_an_unknown_job_is_refused(alice: Actor, job: str) -> None:
    with pytest.raises(Invalid) as caught:
        save_schedule(schedule(job_id=job), actor=alice, now=NOW)
    assert [str(problem) for problem in caught.value.problems] == ['job_id: there is no job "nope"']
    assert not Schedule.objects.exists()


def test_unknown_pcs_and_groups_are_saved(alice: Actor) -> None:
    document = schedule(target={"pcs": ["ghost"], "groups": ["nobody"]})
    assert save_schedule(document, actor=alice, now=NOW).manifest["target"]["pcs"] == ["ghost"]


def test_a_cron_that_never_fires_is_refused(alice: Actor) -> None:
    document = schedule(when={"calendar": {"cron": "0 0 30 2 *"}})
    with pytest.raises(Invalid) as caught:
        save_schedule(document, actor=alice, now=NOW)
    assert [problem.path for problem in caught.value.problems] == ["when.calendar.cron"]


def test_parameters_must_be_the_jobs(alice: Actor) -> None:
    make_job("site", execute={"params": {"DAYS": "7", "SITE": {"required": True}}})
    with pytest.raises(Invalid) as caught:
        save_schedule(schedule(job_id="site", params={"DAY": "1"}), actor=alice, now=NOW)
    assert [str(problem) for problem in caught.value.problems] == [
        'params.DAY: the job has no such parameter; did you mean "DAYS"?',
        "params.SITE: the job requires a value; write one",
    ]
    save_schedule(schedule(job_id="site", params={"SITE": "x"}), actor=alice, now=NOW)


def test_a_new_schedule_must_not_be_there_yet(alice: Actor) -> None:
    save_schedule(schedule(), actor=alice, now=NOW)
    with pytest.raises(Conflict, match="there is a schedule"):
        save_schedule(schedule(), actor=alice, now=NOW, must_be_new=True)


def test_a_schedule_that_becomes_a_calendar_forgets_its_agents(alice: Actor) -> None:
    found = save_schedule(schedule(), actor=alice, now=NOW)
    make_schedule_agent(found, make_agent())
    save_schedule(calendar(), actor=alice, now=NOW)
    assert not ScheduleAgent.objects.exists()


def test_a_schedule_that_agents_run_has_no_times_here(alice: Actor, asked: Asked) -> None:
    found = save_schedule(calendar(runs_on="agent"), actor=alice, now=NOW)
    assert (found.runs_on_agent, found.next_fire_at, reasked(asked, found.pk)) == (True, None, [])
    back = save_schedule(calendar(), actor=alice, now=NOW)
    assert back.next_fire_at == datetime(2026, 12, 1, 13, tzinfo=UTC)


def test_disabling_is_a_flag_in_row_and_manifest_and_twice_is_once(
    alice: Actor, asked: Asked
) -> None:
    found = save_schedule(schedule(), actor=alice, now=NOW)
    asked.clear()
    disable_schedule(found, actor=alice, now=LATER, reason="noisy")
    disable_schedule(found, actor=alice, now=LATER)
    found.refresh_from_db()
    assert (found.enabled, found.manifest["enabled"], asked) == (False, False, [])
    assert acts()[1:] == [("disable", "schedule", "inventory-6h")]
    assert AuditEntry.objects.latest("pk").reason == "noisy"
    assert (
        store_schedule(schedule(enabled=False), actor=alice, now=LATER).change is Change.UNCHANGED
    )


def test_enabling_does_not_catch_up_what_fell_due_meanwhile(alice: Actor, asked: Asked) -> None:
    found = save_schedule(calendar(), actor=alice, now=NOW)
    disable_schedule(found, actor=alice, now=NOW)
    asked.clear()
    later = NOW + timedelta(hours=30)
    enable_schedule(found, actor=alice, now=later)
    found.refresh_from_db()
    assert (found.enabled, "enabled" in found.manifest) == (True, False)
    assert found.next_fire_at == datetime(2026, 12, 3, 13, tzinfo=UTC)
    assert found.settled_until == later
    assert reasked(asked, found.pk) == ["fleet.evaluate"]
    enable_schedule(found, actor=alice, now=later)
    assert [act for act, _, _ in acts()] == ["create", "disable", "enable"]


def test_enabling_a_reconcile_schedule_computes_its_targets(alice: Actor, asked: Asked) -> None:
    found = save_schedule(schedule(enabled=False), actor=alice, now=NOW)
    asked.clear()
    enable_schedule(found, actor=alice, now=LATER)
    assert reasked(asked, found.pk) == ["fleet.targets", "fleet.evaluate"]


def test_a_manifest_that_is_not_valid_any_more_can_be_switched_off(alice: Actor) -> None:
    found = save_schedule(schedule(), actor=alice, now=NOW)
    Schedule.objects.update(manifest={"id": "inventory-6h", "when": "garbage"})
    disable_schedule(found, actor=alice, now=LATER)
    found.refresh_from_db()
    assert found.enabled is False
    with pytest.raises(Invalid):
        enable_schedule(found, actor=alice, now=LATER)
    found.refresh_from_db()
    assert found.enabled is False


def test_cascade_revokes_the_job_and_leaves_what_runs(alice: Actor) -> None:
    found = save_schedule(schedule(), actor=alice, now=NOW)
    running = make_execution(found.job)
    disable_schedule(found, actor=alice, now=LATER, cascade=True)
    found.job.refresh_from_db()
    running.refresh_from_db()
    assert (found.job.revoked_at, running.state) == (LATER, "live")
    assert [act for act, _, _ in acts()] == ["create", "disable", "revoke"]


def test_cascade_kill_stops_what_runs_of_the_job_too(alice: Actor) -> None:
    found = save_schedule(schedule(), actor=alice, now=NOW)
    running = make_execution(found.job)
    disable_schedule(found, actor=alice, now=LATER, cascade_kill=True)
    running.refresh_from_db()
    assert running.state == "cancelled"
    assert [act for act, _, _ in acts()] == ["create", "disable", "revoke", "kill"]


def test_a_deleted_schedule_leaves_its_executions(alice: Actor) -> None:
    found = save_schedule(schedule(), actor=alice, now=NOW)
    make_execution(found.job, schedule=found, schedule_slug=found.slug)
    delete_schedule(found, actor=alice, now=LATER)
    execution = Execution.objects.get()
    assert (execution.schedule, execution.schedule_slug) == (None, "inventory-6h")
    assert AuditEntry.objects.latest("pk").before == schedule()


def test_deleting_twice_finds_nothing_the_second_time(alice: Actor) -> None:
    found = save_schedule(schedule(), actor=alice, now=NOW)
    gone = Schedule.objects.get()
    delete_schedule(found, actor=alice, now=LATER)
    with pytest.raises(NotFound):
        delete_schedule(gone, actor=alice, now=LATER)
    with pytest.raises(NotFound):
        disable_schedule(gone, actor=alice, now=LATER)
