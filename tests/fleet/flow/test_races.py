"""Exchanges at the same time, on real connections. Each race has a stale-copy twin elsewhere."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections

from fleet.flow import deliver as deliver_module
from fleet.flow.collect import collect
from fleet.flow.deliver import deliver
from fleet.flow.signing import Signer, server_signer
from fleet.models import Agent, Command, Job, JobAgent, Output, Result
from fleet.operations.agents import revoke_agent
from fleet.operations.freezing import set_freeze
from fleet.rules.command_states import CommandState
from scheduler.public import Actor
from tests.fleet.flow.reporting import result
from tests.fleet.make import NOW, make_agent, make_command, make_execution, make_job

pytestmark = [
    pytest.mark.concurrency,
    pytest.mark.django_db(transaction=True, serialized_rollback=True),
]
ALICE = Actor("user", "alice")
LATER = NOW + timedelta(minutes=1)
THREADS = 12
S = CommandState


@contextmanager
def pool(size: int = THREADS) -> Iterator[ThreadPoolExecutor]:
    """Threads that give their database connections back."""
    with ThreadPoolExecutor(size) as threads:
        yield threads
        barrier = threading.Barrier(size)

        def give_back() -> None:
            barrier.wait(30)
            connections.close_all()

        for _ in range(size):
            threads.submit(give_back)


def give(agent_id: int) -> int:
    """How many commands an exchange hands out."""
    given = deliver(agent_id, in_hand=frozenset(), most_bytes=3_000_000, now=LATER)
    return len(given.envelopes)


def handed_out() -> int:
    return Command.objects.filter(state=S.HANDED_OUT.value).count()


def test_after_the_answer_frozen_nothing_more_is_handed_out() -> None:
    job = make_job()
    server_signer()
    agents = [make_agent() for _ in range(200)]
    for agent in agents:
        make_command(agent, execution=make_execution(job))
    some_are_out = threading.Event()

    def ask(agent: Agent) -> int:
        given = give(agent.pk)
        if given:
            some_are_out.set()
        return given

    with pool() as threads:
        asking = [threads.submit(ask, agent) for agent in agents]
        assert some_are_out.wait(30)
        set_freeze({"reason": "now"}, actor=ALICE, now=NOW)
        at_the_answer = handed_out()
        given = sum(one.result(60) for one in asking)

    assert handed_out() == given == at_the_answer
    assert 0 < at_the_answer < 200


def test_a_freeze_waits_for_the_hand_out_that_has_read_no_freeze(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The twin of the storm, step by step."""
    command = make_command()
    signer = server_signer()
    has_read, may_go_on = threading.Event(), threading.Event()
    order: list[str] = []

    def slowly() -> Signer:
        has_read.set()
        may_go_on.wait(30)
        return signer

    def freeze() -> None:
        set_freeze({"reason": "now"}, actor=ALICE, now=NOW)
        order.append("frozen" if handed_out() == 1 else "frozen too early")

    monkeypatch.setattr(deliver_module, "server_signer", slowly)
    with pool(2) as threads:
        giving = threads.submit(give, command.agent_id)
        assert has_read.wait(30)
        freezing = threads.submit(freeze)
        assert wait([freezing], timeout=0.3).not_done
        may_go_on.set()
        assert giving.result(30) == 1
        freezing.result(30)

    assert order == ["frozen"]
    assert give(make_command().agent_id) == 0


def test_no_slot_is_taken_twice() -> None:
    job = make_job()
    server_signer()
    agents = [make_agent() for _ in range(40)]
    for agent in agents:
        make_command(agent, execution=make_execution(job), max_concurrent=7)

    with pool() as threads:
        given = sum(threads.map(give, [agent.pk for agent in agents]))

    job.refresh_from_db()
    assert (given, handed_out(), job.slots_taken) == (7, 7, 7)


def test_an_exchange_that_a_proxy_sends_twenty_times_hands_out_once() -> None:
    command = make_command(max_concurrent=1)
    server_signer()

    with pool() as threads:
        given = list(threads.map(lambda _: give(command.agent_id), range(20)))

    command.refresh_from_db()
    assert given == [1] * 20
    assert (command.seq, Job.objects.get().slots_taken) == (1, 1)


def test_a_result_that_comes_fifty_times_at_once_is_stored_once() -> None:
    command = make_command(state=S.STARTED, holds_slot=True)
    Job.objects.update(slots_taken=5)
    report = result(command)

    with pool() as threads:
        verdicts = list(
            threads.map(lambda _: collect(command.agent_id, [report], now=LATER), range(50))
        )

    told = sorted(one[command.pk].value for one in verdicts)
    assert told == ["duplicate"] * 49 + ["stored"]
    assert (Result.objects.count(), Output.objects.count()) == (1, 1)
    assert (JobAgent.objects.count(), Job.objects.get().slots_taken) == (1, 4)


def test_two_different_results_at_once_leave_one_and_a_conflict() -> None:
    command = make_command(state=S.STARTED)
    reports = [result(command, exit_code=code) for code in range(10)]

    with pool() as threads:
        verdicts = list(
            threads.map(lambda one: collect(command.agent_id, [one], now=LATER), reports)
        )

    told = sorted(one[command.pk].value for one in verdicts)
    assert told == ["conflict"] * 9 + ["stored"]
    assert Result.objects.get().conflicts == 9


def test_an_execution_ends_although_its_last_two_results_come_at_once() -> None:
    def once() -> str:
        execution = make_execution(job)
        commands = [make_command(execution=execution, state=S.STARTED) for _ in range(2)]
        both = threading.Barrier(2)

        def send(command: Command) -> None:
            both.wait(30)
            collect(command.agent_id, [result(command)], now=LATER)

        list(threads.map(send, commands))
        execution.refresh_from_db()
        return execution.state

    job = make_job()
    with pool(2) as threads:
        assert [once() for _ in range(10)] == ["ended"] * 10


def test_nothing_goes_out_to_an_agent_once_it_is_revoked() -> None:
    server_signer()
    job = make_job()
    agents = [make_agent() for _ in range(20)]
    for agent in agents:
        make_command(agent, execution=make_execution(job))

    def revoke(agent: Agent) -> int:
        revoke_agent(agent, actor=ALICE, now=LATER)
        return agent.pk

    acts: list[tuple[Callable[[Any], int], Any]] = []
    for agent in agents:
        acts += [(give, agent.pk), (revoke, agent)]
    with pool() as threads:
        list(threads.map(lambda act: act[0](act[1]), acts))

    # What went out before is given up, what had not is cancelled; nothing is left in between.
    states = set(Command.objects.values_list("state", flat=True))
    assert states <= {"cancelled", "outcome_unknown"}
    assert sum(give(agent.pk) for agent in agents) == 0
