"""Schedules that agents fire themselves: what a PC gets of them, and what becomes of its fires."""

from base64 import b64encode
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from fleet.agent.bundle import Bundle, read_bundle
from fleet.agent.checks import Pinned
from fleet.flow.signing import server_signer
from fleet.models import (
    AgentState,
    Command,
    JobAgent,
    Output,
    OutputChunk,
    Result,
    Schedule,
)
from tests.fleet.agent_api.asking import Pc
from tests.fleet.flow.reporting import result_item
from tests.fleet.make import make_agent, make_group, make_job, make_schedule

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def local_schedule(slug: str = "inventory-1h", **keys: Any) -> Schedule:
    schedule = make_schedule(slug, runs_on="agent", **keys)
    Schedule.objects.filter(pk=schedule.pk).update(runs_on_agent=True)
    return schedule


def opened(pc: Pc, told: dict[str, Any]) -> Bundle:
    """Read a bundle as the agent does."""
    signer = server_signer()
    pinned = Pinned(pc.agent.uuid_text, str(signer.server_id), signer.epoch, signer.public_key)
    return read_bundle(told["schedules"], pinned=pinned)


def having(etag: str) -> dict[str, object]:
    return {"facts": {"zone": "UTC", "schedules_etag": etag}}


# --- the bundle ----------------------------------------------------------------------------


def test_a_pc_gets_the_schedules_that_mean_it_signed_for_it() -> None:
    pc, other = Pc(), Pc()
    make_group("till", pc.agent)
    mine = local_schedule("mine", target={"groups": ["till"]}, params={})
    make_schedule("of-the-server")

    told = pc.exchanges()
    (local,) = opened(pc, told).schedules

    assert (local.manifest.id, local.is_revoked) == ("mine", False)
    assert local.job is not None
    assert local.job.id == mine.job.slug
    assert local.execute_sha256 == mine.job.current.execute_sha256  # type: ignore[union-attr]  # it has one
    assert other.exchanges()["schedules"] is None


def test_a_bundle_that_is_there_is_not_sent_again() -> None:
    pc = Pc()
    local_schedule()
    etag = pc.exchanges()["schedules_etag"]

    told = pc.exchanges(**having(etag))
    again = pc.exchanges()

    assert (told["schedules"], told["schedules_etag"]) == (None, etag)
    assert (again["schedules"], again["schedules_etag"]) == (None, etag)


def test_after_an_edit_the_pc_gets_another_bundle() -> None:
    pc = Pc()
    schedule = local_schedule()
    etag = pc.exchanges()["schedules_etag"]
    pc.exchanges(**having(etag))
    Schedule.objects.filter(pk=schedule.pk).update(fingerprint="0" * 64)

    told = pc.exchanges()

    assert told["schedules_etag"] != etag
    assert len(told["schedules"]) == 1


def test_a_pc_that_no_schedule_means_any_more_gets_an_empty_bundle() -> None:
    pc = Pc()
    schedule = local_schedule()
    pc.exchanges(**having(pc.exchanges()["schedules_etag"]))
    Schedule.objects.filter(pk=schedule.pk).update(enabled=False)

    told = pc.exchanges()

    assert opened(pc, told).schedules == ()
    assert pc.exchanges(**having(told["schedules_etag"]))["schedules"] is None


def test_a_revoked_job_is_told_as_such() -> None:
    pc = Pc()
    job = make_job()
    local_schedule(job=job)
    job.revoked_at = timezone.now()
    job.save()

    (local,) = opened(pc, pc.exchanges()).schedules

    assert local.is_revoked


def test_a_job_without_a_revision_that_may_run_is_not_in_the_bundle() -> None:
    pc = Pc()
    job = make_job()
    local_schedule(job=job)
    job.current = None
    job.save()

    (local,) = opened(pc, pc.exchanges()).schedules

    assert local.job is None


def test_a_pc_that_waits_to_be_accepted_gets_none() -> None:
    local_schedule()

    told = Pc(make_agent(state=AgentState.PENDING)).exchanges()

    assert (told["schedules"], told["schedules_etag"]) == (None, "")


def test_an_unreadable_schedule_stops_no_other() -> None:
    pc = Pc()
    spoilt = local_schedule("spoilt")
    Schedule.objects.filter(pk=spoilt.pk).update(manifest={}, fingerprint="1" * 64)
    local_schedule("sound")

    (local,) = opened(pc, pc.exchanges()).schedules

    assert local.manifest.id == "sound"


# --- what it fired -------------------------------------------------------------------------


class Fire:
    """One fire of a PC's own."""

    def __init__(self, schedule: Schedule, *, age: timedelta = timedelta()) -> None:
        revision = schedule.job.current
        assert revision is not None
        self.id = str(uuid4())
        self.at = timezone.now() - age
        self.local = {
            "schedule": schedule.slug,
            "job": schedule.job.slug,
            "version": revision.version,
            "execute_sha256": revision.execute_sha256,
            "nominal_at": self.at.isoformat(),
        }

    def start(self) -> dict[str, object]:
        at = self.at.isoformat()
        return {"command": self.id, "attempt": 1, "started_at": at, "local": self.local}

    def result(self, **fields: object) -> dict[str, object]:
        at = self.at.isoformat()
        whole = {"started_at": at, "finished_at": at, "local": self.local} | fields
        return result_item(Command(id=self.id)) | whole


def test_a_fire_becomes_a_command_without_execution_when_it_is_first_heard_of() -> None:
    pc, schedule = Pc(), local_schedule()
    fire = Fire(schedule)

    told = pc.exchanges(started=[fire.start()])

    command = Command.objects.get()
    assert told["verdicts"] == {}
    assert told["commands"] == []
    assert (command.local_id, command.execution_id, command.agent_id) == (
        fire.id,
        None,
        pc.agent.pk,
    )
    assert (command.state, command.started_at) == ("started", fire.at)
    assert (command.schedule_id, command.revision_id) == (schedule.pk, schedule.job.current_id)


def test_its_result_is_stored_under_the_agents_id_and_counts_for_the_job() -> None:
    pc, schedule = Pc(), local_schedule()
    fire = Fire(schedule)
    pc.exchanges(started=[fire.start()])

    told = pc.exchanges(results=[fire.result()])

    command = Command.objects.get()
    assert told["verdicts"] == {fire.id: "stored"}
    assert (command.state, Result.objects.get().pk) == ("succeeded", command.pk)
    assert Output.objects.filter(command_id=command.pk).exists()
    assert JobAgent.objects.get().last_success_version == "1"


def test_a_result_comes_first_where_the_start_was_never_told() -> None:
    pc, schedule = Pc(), local_schedule()
    fire = Fire(schedule)

    told = pc.exchanges(results=[fire.result(outcome="expired", started_at=None)])

    assert told["verdicts"] == {fire.id: "stored"}
    assert Command.objects.get().state == "expired"


def test_a_repeated_result_is_a_duplicate_of_one_command() -> None:
    pc, schedule = Pc(), local_schedule()
    item = Fire(schedule).result()
    pc.exchanges(results=[item])

    told = pc.exchanges(results=[item], started=[])

    assert list(told["verdicts"].values()) == ["duplicate"]
    assert (Command.objects.count(), Result.objects.count()) == (1, 1)


def test_a_day_without_a_network_is_told_in_one_exchange_with_its_own_times() -> None:
    pc, schedule = Pc(), local_schedule()
    fires = [Fire(schedule, age=timedelta(hours=hours)) for hours in range(24, 0, -1)]

    told = pc.exchanges(results=[fire.result() for fire in fires])

    assert set(told["verdicts"].values()) == {"stored"}
    kept = Command.objects.order_by("created_at").values_list("local_id", "created_at")
    assert list(kept) == [(fire.id, fire.at) for fire in fires]
    ends = Result.objects.order_by("finished_at").values_list("finished_at", flat=True)
    assert list(ends) == [fire.at for fire in fires]
    assert JobAgent.objects.get().last_success_at == fires[-1].at


def test_live_output_of_a_fire_is_kept_under_its_command() -> None:
    pc, schedule = Pc(), local_schedule()
    fire = Fire(schedule)
    pc.exchanges(started=[fire.start()])
    piece = {"command": fire.id, "stream": "stdout", "offset": 0}

    pc.exchanges(output=[piece | {"bytes": b64encode(b"half").decode()}])

    assert OutputChunk.objects.get().command_id == Command.objects.get().pk


def test_a_kill_names_the_fire_as_the_agent_knows_it() -> None:
    pc, schedule = Pc(), local_schedule()
    fire = Fire(schedule)
    pc.exchanges(started=[fire.start()])
    Command.objects.update(kill_requested_at=timezone.now())

    assert pc.exchanges(**having("some"))["kill"] == [fire.id]


def test_two_pcs_with_the_same_id_have_a_command_each() -> None:
    pc, other, schedule = Pc(), Pc(), local_schedule()
    item = Fire(schedule).result()

    told = [one.exchanges(results=[item])["verdicts"] for one in (pc, other)]

    assert told[0] == told[1] == {item["command"]: "stored"}
    assert set(Command.objects.values_list("agent_id", flat=True)) == {pc.agent.pk, other.agent.pk}


def test_an_id_of_anothers_command_opens_nothing() -> None:
    pc, schedule = Pc(), local_schedule()
    theirs = Command.objects.get(pk=_command_of_another().pk)
    item = Fire(schedule).result() | {"command": str(theirs.pk)}

    told = pc.exchanges(results=[item])

    theirs.refresh_from_db()
    assert told["verdicts"] == {str(theirs.pk): "stored"}
    assert theirs.state == "handed_out"
    assert Result.objects.get().agent_id == pc.agent.pk


def _command_of_another() -> Command:
    other, schedule = Pc(), local_schedule("of-another")
    other.exchanges(started=[Fire(schedule).start()])
    Command.objects.update(state="handed_out")
    return Command.objects.get()


@pytest.mark.parametrize(
    "change", [{"job": "nobody"}, {"version": "9"}, {"execute_sha256": "0" * 64}]
)
def test_a_fire_of_a_job_that_nobody_knows_is_answered_for_as_unknown(
    change: dict[str, str],
) -> None:
    pc, schedule = Pc(), local_schedule()
    fire = Fire(schedule)
    fire.local |= change

    told = pc.exchanges(results=[fire.result()])

    assert told["verdicts"] == {fire.id: "unknown"}
    assert Command.objects.count() == 0


def test_a_fire_of_a_schedule_that_is_gone_is_kept_all_the_same() -> None:
    pc, schedule = Pc(), local_schedule()
    fire = Fire(schedule)
    schedule.delete()

    pc.exchanges(results=[fire.result()])

    assert Command.objects.get().schedule_id is None


def test_a_fire_of_the_future_is_dated_now() -> None:
    pc, schedule = Pc(), local_schedule()
    fire = Fire(schedule, age=-DAY)

    pc.exchanges(results=[fire.result()])

    assert Command.objects.get().created_at <= timezone.now()


def test_a_pc_that_waits_to_be_accepted_has_fired_nothing() -> None:
    pc, fire = Pc(make_agent(state=AgentState.PENDING)), Fire(local_schedule())

    told = pc.exchanges(results=[fire.result()])

    assert told["verdicts"] == {fire.id: "unknown"}
    assert (Command.objects.count(), Result.objects.count()) == (0, 0)


def test_a_fire_is_not_counted_to_a_schedule_that_the_server_fires() -> None:
    pc, fire = Pc(), Fire(make_schedule("of-the-server"))

    pc.exchanges(results=[fire.result()])

    assert Command.objects.get().schedule_id is None


def test_a_fire_is_not_counted_to_a_schedule_of_another_job() -> None:
    pc, fire = Pc(), Fire(local_schedule())
    fire.local["schedule"] = local_schedule("of-another-job", job=make_job("another")).slug

    pc.exchanges(results=[fire.result()])

    assert Command.objects.get().schedule_id is None
