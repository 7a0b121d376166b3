"""Results: stored exactly once, with all that follows."""

import logging
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from fleet.flow import collect as module
from fleet.flow.closing import give_up
from fleet.flow.collect import collect
from fleet.models import (
    Agent,
    Command,
    Job,
    JobAgent,
    Output,
    OutputChunk,
    Result,
    ScheduleAgent,
    new_id,
)
from fleet.rules.command_states import CommandState
from fleet.rules.verdicts import Verdict
from tests.fleet.flow.reporting import result, stream
from tests.fleet.make import (
    NOW,
    make_agent,
    make_command,
    make_execution,
    make_job,
    make_schedule,
    make_schedule_agent,
)

pytestmark = pytest.mark.django_db
S = CommandState
LATER = NOW + timedelta(minutes=1)
MUCH_LATER = NOW + timedelta(days=7)


def running(**fields: Any) -> Command:
    values: dict[str, Any] = {"attempt": 1, "started_at": NOW, "handed_out_at": NOW}
    return make_command(state=S.STARTED, **(values | fields))


def take(command: Command, *reports: Any, now: Any = LATER) -> list[Verdict]:
    """The verdicts on one command's reports, each in an exchange of its own."""
    agent_id = command.agent_id
    return [collect(agent_id, [one], now=now)[command.pk] for one in reports]


def state_of(command: Command) -> str:
    command.refresh_from_db()
    return command.state


def test_a_result_ends_its_command_and_is_kept_with_its_output() -> None:
    command = running()

    verdicts = take(
        command,
        result(
            command,
            outcome="failed",
            exit_code=3,
            reason="exit code 3",
            note="no such file",
            output={"stdout": stream(b"a" * 10, b"z" * 5, total=99), "code_page": "cp850"},
        ),
    )

    kept = Result.objects.get()
    assert verdicts == [Verdict.STORED]
    assert state_of(command) == "failed"
    assert (command.reason, command.ended_at) == ("exit code 3", LATER)
    assert (kept.pk, kept.agent_id, kept.job_id) == (command.pk, command.agent_id, command.job_id)
    assert (kept.outcome, kept.exit_code, kept.reason) == ("failed", 3, "exit code 3")
    assert (kept.note, kept.duration_ms, kept.code_page) == ("no such file", 1200, "cp850")
    assert (kept.received_at, kept.late, kept.reaped) == (LATER, False, False)
    assert (kept.execution_id, kept.job_version) == (command.execution_id, "1")
    output = Output.objects.get()
    assert (bytes(output.head), bytes(output.tail), output.total) == (b"a" * 10, b"z" * 5, 99)


@pytest.mark.parametrize(
    "outcome",
    ["succeeded", "failed", "timed_out", "killed", "refused", "outcome_unknown"],
)
def test_a_started_command_ends_as_the_agent_says(outcome: str) -> None:
    command = running()

    assert take(command, result(command, outcome=outcome)) == [Verdict.STORED]
    assert state_of(command) == outcome


@pytest.mark.parametrize("outcome", ["succeeded", "skipped", "expired", "refused"])
def test_an_answer_may_come_without_a_start(outcome: str) -> None:
    command = make_command(state=S.HANDED_OUT)

    assert take(command, result(command, outcome=outcome)) == [Verdict.STORED]
    assert state_of(command) == outcome


def test_a_retry_that_never_came_about_is_a_failure() -> None:
    command = running()

    take(command, result(command, outcome="expired"))

    assert state_of(command) == "failed"
    assert Result.objects.get().outcome == "expired"


def test_a_result_brings_its_own_start_where_that_was_lost() -> None:
    command = make_command(state=S.HANDED_OUT, handed_out_at=NOW)

    take(command, result(command, attempt=3, retries=2))

    command.refresh_from_db()
    assert (command.attempt, command.started_at) == (3, NOW)
    assert Result.objects.get().retries == 2


def test_chunks_give_way_to_the_final_output() -> None:
    command = running()
    OutputChunk.objects.create(
        command_id=command.pk, stream="stdout", offset=0, data=b"hel", received_at=NOW
    )

    take(command, result(command))

    assert OutputChunk.objects.count() == 0
    assert bytes(Output.objects.get().head) == b"hello\n"


def test_an_empty_stream_leaves_no_row() -> None:
    command = running()

    take(command, result(command, output={"stdout": stream(b""), "stderr": stream(b"oops")}))

    assert [row.stream for row in Output.objects.all()] == ["stderr"]


# --- once ----------------------------------------------------------------------------------


def test_the_same_result_a_hundred_times_is_one() -> None:
    command = running()
    report = result(command)

    verdicts = take(command, *[report] * 100)

    assert verdicts == [Verdict.STORED] + [Verdict.DUPLICATE] * 99
    assert Result.objects.count() == 1
    assert Output.objects.count() == 1


def test_the_same_result_after_a_week_is_a_duplicate() -> None:
    command = running()
    report = result(command)
    take(command, report)

    assert take(command, report, now=MUCH_LATER) == [Verdict.DUPLICATE]
    assert Result.objects.get().received_at == LATER


def test_another_result_of_the_same_command_is_a_conflict_and_changes_nothing() -> None:
    command = running()
    take(command, result(command, exit_code=0))

    verdict = take(command, result(command, outcome="failed", exit_code=1))

    kept = Result.objects.get()
    assert verdict == [Verdict.CONFLICT]
    assert (kept.outcome, kept.exit_code, kept.conflicts) == ("succeeded", 0, 1)
    assert state_of(command) == "succeeded"


def test_two_results_of_one_command_in_one_exchange_are_one_result() -> None:
    command = running()
    same = result(command)

    assert collect(command.agent_id, [same, same], now=LATER) == {command.pk: Verdict.DUPLICATE}
    assert Result.objects.count() == 1


def test_a_result_whose_row_was_pruned_is_not_stored_again() -> None:
    command = running()
    report = result(command)
    take(command, report)
    Result.objects.all().delete()

    assert take(command, report, now=MUCH_LATER) == [Verdict.DUPLICATE]
    assert Result.objects.count() == 0


def test_unknown_and_foreign_commands_are_answered_alike_and_untouched() -> None:
    mine, foreign = make_agent(), running()
    stranger = new_id()

    verdicts = collect(mine.pk, [result(stranger), result(foreign)], now=LATER)

    assert verdicts == {stranger: Verdict.UNKNOWN, foreign.pk: Verdict.UNKNOWN}
    assert state_of(foreign) == "started"
    assert Result.objects.count() == Output.objects.count() == 0


# --- late ----------------------------------------------------------------------------------


def reap(command: Command) -> None:
    with transaction.atomic():
        give_up(Command.objects.filter(pk=command.pk), reason="no answer", now=LATER)


def test_a_late_answer_corrects_what_was_given_up() -> None:
    command = running()
    reap(command)

    assert take(command, result(command), now=MUCH_LATER) == [Verdict.STORED]

    kept = Result.objects.get()
    assert (kept.outcome, kept.late, kept.reaped) == ("succeeded", True, False)
    assert kept.received_at == MUCH_LATER
    assert state_of(command) == "succeeded"


def test_a_late_answer_is_taken_once() -> None:
    command = running()
    reap(command)
    report = result(command)

    assert take(command, report, report) == [Verdict.STORED, Verdict.DUPLICATE]


@pytest.mark.parametrize("state", [S.CANCELLED, S.EXPIRED, S.SKIPPED])
def test_the_truth_about_a_command_that_ended_otherwise_is_kept_and_moves_nothing(
    state: CommandState,
) -> None:
    command = make_command(state=state, ended_at=NOW)

    assert take(command, result(command)) == [Verdict.STORED]

    kept = Result.objects.get()
    assert (kept.outcome, kept.late) == ("succeeded", True)
    assert state_of(command) == state.value
    assert JobAgent.objects.get().last_success_at == NOW


@pytest.mark.parametrize("state", [S.STAGED, S.QUEUED])
def test_a_result_that_the_server_forgot_asking_for_is_taken(state: CommandState) -> None:
    command = make_command(state=state)

    assert take(command, result(command)) == [Verdict.STORED]
    assert state_of(command) == "succeeded"


# --- what follows --------------------------------------------------------------------------


def scheduled(**keys: Any) -> tuple[Command, ScheduleAgent]:
    job, agent = make_job(), make_agent()
    schedule = make_schedule(job=job, **keys)
    row = make_schedule_agent(schedule, agent, due_at=None, last_dispatched_at=NOW)
    execution = make_execution(job, schedule=schedule)
    return make_command(agent, execution=execution, state=S.STARTED, started_at=NOW), row


def test_a_success_is_the_fact_and_starts_the_cooldown() -> None:
    command, row = scheduled()

    take(command, result(command, finished_at=(NOW + timedelta(seconds=20)).isoformat()))

    row.refresh_from_db()
    finished = NOW + timedelta(seconds=20)
    assert JobAgent.objects.get().last_success_at == finished
    assert (row.due_at, row.failures) == (finished + timedelta(hours=6), 0)


@pytest.mark.parametrize("outcome", ["failed", "timed_out", "killed", "refused"])
def test_a_failure_counts_and_waits(outcome: str) -> None:
    command, row = scheduled()
    ScheduleAgent.objects.update(failures=2)

    take(command, result(command, outcome=outcome))

    row.refresh_from_db()
    # The window is 120 s; after the third failure it has doubled twice.
    assert (row.failures, row.due_at) == (3, NOW + timedelta(seconds=480))


@pytest.mark.parametrize("told", [NOW - timedelta(days=3000), LATER + timedelta(days=3000)])
def test_a_pc_with_a_wrong_clock_succeeds_between_its_command_and_now(told: Any) -> None:
    command, _ = scheduled()

    take(command, result(command, finished_at=told.isoformat()))

    at = JobAgent.objects.get().last_success_at
    assert at in {NOW, LATER}
    finished_at = Result.objects.get().finished_at
    assert finished_at is not None
    assert LATER - timedelta(days=400) <= finished_at <= LATER + timedelta(days=1)


def test_a_result_frees_the_slot() -> None:
    job = make_job()
    Job.objects.update(slots_taken=3)
    command = make_command(job=job, state=S.STARTED, holds_slot=True, max_concurrent=3)

    take(command, result(command), result(command))

    job.refresh_from_db()
    assert job.slots_taken == 2


# --- spoilt items --------------------------------------------------------------------------


NASTY = "nul \0, half \ud800 pair, \x1b[31m, \u202e" + "x" * 5000


def test_nasty_texts_are_cleaned_and_stored() -> None:
    command = running()

    verdicts = take(command, result(command, reason=NASTY, note=NASTY))

    kept = Result.objects.get()
    assert verdicts == [Verdict.STORED]
    assert kept.reason.startswith("nul \ufffd, half \ufffd pair, \\x1b[31m, \\u202e")
    assert (len(kept.reason), len(kept.note)) == (500, 4000)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"exit_code": 2**40}, {"exit_code": None}),
        ({"exit_code": "0"}, {"exit_code": None}),
        ({"duration_ms": -1}, {"duration_ms": None}),
        ({"attempt": 0}, {"attempt": 1}),
        ({"retries": 10**9}, {"retries": 0}),
        ({"started_at": "0001-01-01T00:00:00+14:00"}, {"started_at": None}),
        ({"finished_at": "yesterday"}, {"finished_at": None}),
        ({"output": ["x"]}, {"code_page": ""}),
        ({"output": {"stdout": {"head": "%%%", "total": -4}}}, {"outcome": "succeeded"}),
        ({"outcome": "banana"}, {"outcome": "outcome_unknown"}),
        ({"outcome": None}, {"reason": "the PC's report could not be read"}),
    ],
)
def test_a_spoilt_field_is_left_out_and_the_rest_is_stored(
    fields: dict[str, Any], expected: dict[str, Any]
) -> None:
    command = running()

    assert take(command, result(command, **fields)) == [Verdict.STORED]
    kept = Result.objects.get()
    assert {name: getattr(kept, name) for name in expected} == expected


def test_output_beyond_a_megabyte_is_cut_to_its_head_and_tail() -> None:
    command = running()
    big = stream(b"h" * 700_000, b"t" * 700_000)

    take(command, result(command, output={"stdout": big, "stderr": stream(b"e" * 10)}))

    output = Output.objects.get(stream="stdout")
    assert (len(output.head), len(output.tail)) == (700_000, 348_576)
    assert bytes(output.tail[-1:]) == b"t"
    assert output.total == 1_400_000
    assert bytes(Output.objects.get(stream="stderr").head) == b""


def test_one_result_that_cannot_be_stored_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    agent = make_agent()
    good, poisoned, other = (make_command(agent, state=S.STARTED) for _ in range(3))
    honest = module._result

    def fails(one: Any, now: Any) -> Result:
        if one.command.pk == poisoned.pk:
            raise ValueError("poison")
        return honest(one, now)

    monkeypatch.setattr(module, "_result", fails)
    with caplog.at_level(logging.ERROR):
        verdicts = collect(agent.pk, [result(c) for c in (good, poisoned, other)], now=LATER)

    assert verdicts == {good.pk: Verdict.STORED, other.pk: Verdict.STORED}
    assert [state_of(c) for c in (good, poisoned, other)] == ["succeeded", "started", "succeeded"]
    assert Result.objects.count() == 2
    assert str(poisoned.pk) in str([record.__dict__ for record in caplog.records])


@pytest.mark.parametrize(
    "step",
    [pytest.param("_result", id="20.3#5 the row"), pytest.param("close", id="20.3#5 the counters")],
)
def test_a_result_that_failed_half_way_leaves_nothing_and_is_taken_the_next_time(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = running()
    report = result(command)

    def fails(*_: Any, **__: Any) -> None:
        raise ValueError("no")

    with monkeypatch.context() as patched:
        patched.setattr(module, step, fails)
        assert collect(command.agent_id, [report], now=LATER) == {}
    assert state_of(command) == "started"
    assert Result.objects.count() == Output.objects.count() == JobAgent.objects.count() == 0

    assert take(command, report) == [Verdict.STORED]
    assert state_of(command) == "succeeded"


def test_a_database_that_is_gone_is_no_fault_of_the_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = running()

    def gone(*_: Any) -> None:
        raise OperationalError("server closed the connection")

    monkeypatch.setattr(module, "take_turn", gone)

    with pytest.raises(OperationalError):
        collect(command.agent_id, [result(command)], now=LATER)
    assert state_of(command) == "started"


# --- cost ----------------------------------------------------------------------------------


def test_forty_results_cost_as_many_queries_as_two() -> None:
    job = make_job()
    schedule = make_schedule(job=job)

    def queries(count: int) -> int:
        agent: Agent = make_agent()
        make_schedule_agent(schedule, agent, due_at=None)
        commands: list[UUID] = [
            make_command(agent, execution=make_execution(job), state=S.STARTED, attempt=1).pk
            for _ in range(count)
        ]
        reports = [result(pk) for pk in commands]
        with CaptureQueriesContext(connection) as captured:
            verdicts = collect(agent.pk, reports, now=LATER)
        assert set(verdicts.values()) == {Verdict.STORED}
        return len(captured)

    assert queries(2) == queries(40)
