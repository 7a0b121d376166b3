"""Acts on jobs, schedules, executions and PCs: what follows, and how a refusal is said."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from fleet.models import Agent, Command, Execution, Freeze, Job, Membership
from fleet.rules.command_states import CommandState
from tests.fleet.admin.conftest import Visit
from tests.fleet.admin.posting import post_well, said
from tests.fleet.admin.reading import Page
from tests.fleet.make import (
    NOW,
    make_agent,
    make_command,
    make_execution,
    make_group,
    make_job,
    make_schedule,
    revise,
)

pytestmark = pytest.mark.django_db


def freeze() -> None:
    Freeze.objects.filter(pk=1).update(is_set=True, reason="holiday")


def refused(client: Client, page: str, data: dict[str, object], *args: object) -> str:
    """Send an act that is refused, and return what the page says."""
    answer = client.post(reverse(f"admin:fleet_{page}", args=args), data)
    assert answer.status_code == 200
    return said(Page(answer.content.decode()))


def test_a_job_runs_on_the_chosen_pcs_and_leads_to_its_execution(root: Client) -> None:
    job, agent = make_job("patch"), make_agent("pc-a")
    make_group("office", make_agent("pc-b"))
    typed = {"pcs": "pc-a", "groups": ["office"], "deadline": "4h", "reason": "now"}

    address = root.post(reverse("admin:fleet_job_run", args=[job.pk]), typed).headers["Location"]

    execution = Execution.objects.get()
    names = Command.objects.values_list("agent__name", flat=True)
    assert sorted(names) == ["pc-a", "pc-b"]
    assert address == reverse("admin:fleet_execution_change", args=[execution.pk])
    assert (execution.actor, execution.reason) == ("root", "now")
    assert agent.commands.count() == 1


RUNS = [
    ({"pcs": ""}, "names nobody"),
    ({"pcs": "nobody"}, "nobody"),
    ({"pcs": "../etc"}, "no name"),
    ({"pcs": "pc-a", "deadline": "soon"}, "soon"),
    ({"pcs": "pc-a", "groups": ["none"]}, "none"),
    ({"pcs": "pc-a", "override_freeze": "on", "reason": ""}, "say why"),
]


@pytest.mark.parametrize(("typed", "words"), RUNS, ids=range(len(RUNS)))
def test_a_run_that_cannot_be_is_refused_at_its_field(
    typed: dict[str, object], words: str, root: Client
) -> None:
    job = make_job("patch")
    make_agent("pc-a")

    assert words in refused(root, "job_run", typed, job.pk)
    assert not Execution.objects.exists()


def test_nothing_runs_by_hand_while_the_fleet_is_frozen(visit: Visit) -> None:
    job, client = make_job("patch"), visit("operator")
    make_agent("pc-a")
    freeze()

    assert "frozen: holiday" in refused(client, "job_run", {"pcs": "pc-a"}, job.pk)
    assert not Execution.objects.exists()


def test_who_may_overrides_the_freeze_with_a_reason(visit: Visit) -> None:
    job, client = make_job("patch"), visit("fleet-admin")
    make_agent("pc-a")
    freeze()

    post_well(
        client,
        "job_run",
        {"pcs": "pc-a", "override_freeze": "on", "reason": "security fix"},
        job.pk,
    )

    execution = Execution.objects.get()
    assert (execution.override_freeze, execution.reason) == (True, "security fix")


def test_a_parameter_of_the_job_is_asked_for_and_sent(root: Client) -> None:
    job = make_job("patch", execute={"params": {"DAYS": {"required": True}}})
    make_agent("pc-a")

    assert "DAYS" in refused(root, "job_run", {"pcs": "pc-a"}, job.pk)
    post_well(root, "job_run", {"pcs": "pc-a", "params": 'DAYS: "7"'}, job.pk)

    assert Execution.objects.get().plan["params"] == {"DAYS": "7"}


def test_a_second_person_approves_what_somebody_wrote(visit: Visit) -> None:
    job = make_job("patch", version="1")
    revise(job, version="2", current=False, require_approval=True)

    post_well(visit("approver"), "job_approve", {"reason": "read it"}, job.pk)

    job.refresh_from_db()
    assert job.current is not None
    assert (job.current.version, job.current.approved_by) == ("2", "approver")


def test_nobody_approves_their_own_words(visit: Visit) -> None:
    client = visit("fleet-admin")
    job = make_job("patch", version="1")
    revision = revise(job, version="2", current=False, require_approval=True)
    author = User.objects.get(username="fleet-admin")
    type(revision).objects.filter(pk=revision.pk).update(
        created_by="fleet-admin", created_by_id=author.pk
    )

    assert refused(client, "job_approve", {"reason": ""}, job.pk)
    job.refresh_from_db()
    assert job.current is not None
    assert job.current.version == "1"


def test_a_revoked_job_may_start_again_once_that_is_taken_back(root: Client) -> None:
    job = make_job("patch")

    post_well(root, "job_revoke", {"reason": "bad"}, job.pk)
    assert Job.objects.get().revoked_at is not None
    post_well(root, "job_unrevoke", {"reason": "good"}, job.pk)
    assert Job.objects.get().revoked_at is None


def test_a_schedule_is_switched_off_and_on_from_the_list(root: Client) -> None:
    schedules = [make_schedule(job=make_job("patch")), make_schedule()]
    keys = [schedule.pk for schedule in schedules]
    chosen = {"_selected_action": keys, "confirmed": "yes", "reason": "pause"}
    address = reverse("admin:fleet_schedule_changelist")

    root.post(address, chosen | {"action": "disable"})
    for schedule in schedules:
        schedule.refresh_from_db()
        assert schedule.enabled is False
    root.post(address, chosen | {"action": "enable"})
    for schedule in schedules:
        schedule.refresh_from_db()
        assert schedule.enabled is True


def test_an_act_on_many_is_asked_about_first(root: Client) -> None:
    schedule = make_schedule("nightly")
    chosen = {"_selected_action": [schedule.pk], "action": "disable"}

    answer = root.post(reverse("admin:fleet_schedule_changelist"), chosen)

    schedule.refresh_from_db()
    assert "Disable: 1 schedules" in answer.content.decode()
    assert schedule.enabled is True


def test_too_many_at_once_are_refused_whole(root: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.admin.verbs.MOST_AT_ONCE", 1)
    keys = [make_schedule().pk, make_schedule().pk]
    chosen = {"_selected_action": keys, "action": "disable", "confirmed": "yes", "reason": ""}

    answer = root.post(reverse("admin:fleet_schedule_changelist"), chosen, follow=True)

    assert "Choose at most 1 at once; nothing was done." in answer.content.decode()


def test_switching_off_with_everything_stops_what_runs(root: Client) -> None:
    schedule = make_schedule("nightly", job=make_job("patch"))
    execution = make_execution(schedule.job, schedule=schedule)
    running = make_command(execution=execution, state=CommandState.STARTED, started_at=NOW)
    waiting = make_command(execution=execution)

    post_well(root, "schedule_disable-kill", {"reason": "broken"}, schedule.pk)

    for row in (schedule, schedule.job, running, waiting):
        row.refresh_from_db()
    assert schedule.enabled is False
    assert schedule.job.revoked_at is not None
    assert running.kill_requested_at is not None
    assert waiting.state == CommandState.CANCELLED


def test_a_schedule_is_fired_now(root: Client) -> None:
    make_agent("pc-a")
    schedule = make_schedule("nightly", job=make_job("patch"))

    address = post_well(root, "schedule_fire", {"reason": "please"}, schedule.pk)

    execution = Execution.objects.get()
    assert address.endswith(reverse("admin:fleet_execution_change", args=[execution.pk]))
    assert (execution.origin, execution.actor) == ("fire", "root")


def test_a_fire_that_meets_a_closed_gate_says_which(root: Client) -> None:
    schedule = make_schedule("nightly", job=make_job("patch"), target={})

    assert "no target" in refused(root, "schedule_fire", {"reason": ""}, schedule.pk)
    assert not Execution.objects.exists()


def test_an_execution_is_stopped_and_twice_is_refused_in_words(root: Client) -> None:
    waiting = make_command(make_agent())
    key = waiting.execution_id

    post_well(root, "execution_kill", {"reason": ""}, key)
    waiting.refresh_from_db()
    assert waiting.state == CommandState.CANCELLED
    assert "over already" in refused(root, "execution_kill", {"reason": ""}, key)


def test_it_runs_again_on_the_pcs_where_it_failed(root: Client) -> None:
    execution = make_execution(make_job("patch"), planned=2)
    failed = make_command(execution=execution, state=CommandState.FAILED)
    make_command(execution=execution, state=CommandState.SUCCEEDED)

    post_well(root, "execution_again", {"reason": ""}, execution.pk)

    again = Execution.objects.exclude(pk=execution.pk).get()
    assert [command.agent_id for command in again.commands.all()] == [failed.agent_id]


def test_an_execution_that_failed_nowhere_does_not_run_again(root: Client) -> None:
    execution = make_execution(make_job("patch"))

    assert "failed on no PC" in refused(root, "execution_again", {"reason": ""}, execution.pk)
    assert Execution.objects.count() == 1


def test_a_pc_is_put_into_exactly_the_ticked_groups(root: Client) -> None:
    agent = make_agent()
    make_group("old", agent)
    make_group("new")

    post_well(root, "agent_groups", {"groups": "new", "reason": ""}, agent.pk)

    assert list(Membership.objects.values_list("group__slug", flat=True)) == ["new"]


def test_a_waiting_pc_is_accepted_and_a_lost_one_revoked(root: Client) -> None:
    waiting, lost = make_agent(state="pending"), make_agent()

    post_well(root, "agent_accept", {"reason": ""}, waiting.pk)
    post_well(root, "agent_revoke", {"reason": "stolen"}, lost.pk)

    states = dict(Agent.objects.values_list("pk", "state"))
    assert states == {waiting.pk: "active", lost.pk: "revoked"}
    assert "does not wait" in refused(root, "agent_accept", {"reason": ""}, waiting.pk)


def test_the_other_machine_of_an_identity_takes_over_or_is_turned_away(root: Client) -> None:
    first, second = (make_agent(rival_fingerprint="r" * 64) for _ in range(2))

    post_well(root, "agent_take-over", {"reason": ""}, first.pk)
    post_well(root, "agent_dismiss", {"reason": ""}, second.pk)

    kept = dict(Agent.objects.values_list("pk", "fingerprint"))
    assert kept == {first.pk: "r" * 64, second.pk: "f" * 64}


def test_a_second_machine_is_shown_until_an_operator_decides(root: Client) -> None:
    agent = make_agent(rival_fingerprint="r" * 64, rival_seen_at=NOW)
    url = reverse("admin:fleet_agent_change", args=[agent.pk])
    assert "the same identity" in root.get(url).text

    post_well(root, "agent_dismiss", {"reason": "a clone"}, agent.pk)

    assert "the same identity" not in root.get(url).text


def test_buttons_are_shown_where_the_act_makes_sense(root: Client) -> None:
    job = make_job("patch")

    def buttons() -> set[str]:
        page = root.get(reverse("admin:fleet_job_overview", args=[job.pk]))
        return {verb["title"] for verb in page.context["verbs"]}

    assert "Revoke" in buttons()
    assert "Take the revocation back" not in buttons()
    Job.objects.update(revoked_at=NOW)
    assert {"Take the revocation back"} == buttons() & {"Take the revocation back", "Run now"}


def test_an_act_on_what_is_not_there_is_not_found(root: Client) -> None:
    assert root.get(reverse("admin:fleet_job_run", args=[999])).status_code == 404
