"""Why did it not run? Now, in the past, in the future, and for one agent."""

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.flow.explaining import NOTHING_KEPT, Tense, explain
from fleet.flow.tick import tick
from fleet.models import Command, Evaluation, Freeze, JobAgent, Schedule
from fleet.rules.firing import Reason
from tests.fleet.make import (
    MINUTE,
    NOW,
    make_agent,
    make_schedule,
    make_schedule_agent,
)

pytestmark = pytest.mark.django_db
HOUR = 60 * MINUTE


def closed(found: Any) -> list[str]:
    return [gate.reason.value for gate in found.gates if not gate.is_open]


def test_52_every_gate_is_listed_and_the_first_closed_one_is_the_reason() -> None:
    schedule = make_schedule(tz="utc", constraints={"window": "22:00-05:00", "max_concurrent": 1})
    make_schedule_agent(schedule, make_agent())
    Freeze.objects.update(is_set=True, reason="year end")
    found = explain(schedule, now=NOW)
    assert (found.tense, found.reason) == (Tense.NOW, Reason.FROZEN)
    assert closed(found)[:2] == ["frozen", "outside window"]
    window = next(gate for gate in found.gates if gate.reason is Reason.OUTSIDE_WINDOW)
    assert (window.detail, window.opens_at) == ("22:00-05:00 in UTC", NOW + 10 * HOUR)


def test_agents_are_named_by_what_stops_them() -> None:
    schedule = make_schedule(constraints={"max_concurrent": 1})
    make_schedule_agent(schedule, make_agent("due-1"), due_at=NOW - HOUR)
    make_schedule_agent(schedule, make_agent("due-2"), due_at=NOW - MINUTE)
    make_schedule_agent(schedule, make_agent("off", last_seen_at=NOW - HOUR))
    done = make_agent("done")
    make_schedule_agent(schedule, done, due_at=NOW + 4 * HOUR)
    JobAgent.objects.create(job=schedule.job, agent=done, last_success_at=NOW - 2 * HOUR)
    failing = make_agent("failing")
    make_schedule_agent(
        schedule, failing, due_at=NOW + HOUR, failures=3, last_failed_at=NOW - MINUTE
    )
    found = explain(schedule, now=NOW)
    assert found.reason is Reason.DISPATCHED
    words = {reason: [view.name for view in views] for reason, views in found.agents.items()}
    assert words == {
        "nobody alive": ["off"],
        "all done": ["done"],
        "backing off": ["failing"],
        "no free slot": ["due-2"],
        "dispatched": ["due-1"],
    }


def test_all_agents_are_counted_not_the_due_ones_alone() -> None:
    schedule = make_schedule(constraints={"max_concurrent": 1})
    for _ in range(3):
        make_schedule_agent(schedule, make_agent())
    make_schedule_agent(schedule, make_agent(last_seen_at=None), due_at=NOW + HOUR)
    found = explain(schedule, now=NOW)
    assert found.counts == {"nobody alive": 1, "no free slot": 2, "dispatched": 1}


@pytest.mark.parametrize(
    ("state", "reason", "words"),
    [
        ({}, Reason.DISPATCHED, "due: it is sent the job"),
        (
            {"failures": 2, "last_failed_at": NOW - MINUTE},
            Reason.BACKING_OFF,
            "failed 2 times in a row, next try 2026-12-01 12:03:00 UTC",
        ),
        (
            {"last_dispatched_at": NOW - MINUTE},
            Reason.MUTED,
            "sent 2026-12-01 11:59:00 UTC, muted until 2026-12-01 12:01:00 UTC",
        ),
    ],
)
def test_one_agent_is_told_its_own_reason(
    state: dict[str, object], reason: Reason, words: str
) -> None:
    schedule, agent = make_schedule(), make_agent()
    make_schedule_agent(schedule, agent, **state)
    view = explain(schedule, now=NOW, agent=agent).agent
    assert view is not None
    assert (view.reason, view.words) == (reason, words)


def test_one_agent_that_is_off_done_or_not_meant() -> None:
    schedule = make_schedule(when={"per_pc": "once"})
    off, done, stranger = make_agent(last_seen_at=NOW - HOUR), make_agent(), make_agent()
    for agent in (off, done):
        make_schedule_agent(schedule, agent)
    JobAgent.objects.create(job=schedule.job, agent=done, last_success_at=NOW - HOUR)
    words = []
    for agent in (off, done, stranger):
        view = explain(schedule, now=NOW, agent=agent).agent
        words.append(view.words if view else "")
    assert words == [
        "offline since 2026-12-01 11:00:00 UTC",
        "done for ever (succeeded 2026-12-01 11:00:00 UTC)",
        "the schedule does not mean it",
    ]


def test_one_agent_beyond_the_cap_is_told_so() -> None:
    schedule = make_schedule(constraints={"max_concurrent": 1})
    first, second = make_agent(), make_agent()
    make_schedule_agent(schedule, first, due_at=NOW - HOUR)
    make_schedule_agent(schedule, second)
    view = explain(schedule, now=NOW, agent=second).agent
    assert view is not None
    assert view.reason is Reason.NO_FREE_SLOT


def test_explaining_changes_nothing() -> None:
    schedule, agent = make_schedule(), make_agent()
    make_schedule_agent(schedule, agent)
    explain(schedule, now=NOW, agent=agent)
    assert not Command.objects.exists()
    assert not Evaluation.objects.exists()


# ------------------------------------------------------------------------------- the past


def test_the_past_is_what_was_in_force_then_and_is_not_recomputed() -> None:
    schedule = make_schedule(tz="utc", constraints={"window": "22:00-05:00"})
    make_schedule_agent(schedule, make_agent())
    tick(now=NOW)
    Schedule.objects.filter(pk=schedule.pk).update(
        manifest=make_schedule().manifest, fingerprint="edited"
    )
    schedule.refresh_from_db()
    found = explain(schedule, now=NOW + HOUR, at=NOW + MINUTE)
    assert (found.tense, found.reason) == (Tense.PAST, Reason.OUTSIDE_WINDOW)
    assert found.words == "outside window: 22:00-05:00 in UTC"
    assert closed(found) == ["outside window"]
    assert found.gates[-1].reason is Reason.OUTSIDE_WINDOW
    assert "in force since 2026-12-01 12:00 UTC" in found.notes


def test_each_change_of_reason_is_found_at_its_time() -> None:
    schedule = make_schedule()
    make_schedule_agent(schedule, make_agent())
    tick(now=NOW)
    tick(now=NOW + MINUTE)
    later = NOW + HOUR
    reasons = [
        explain(schedule, now=later, at=NOW + timedelta(seconds=seconds)).reason
        for seconds in (-1, 0, 59, 60, 600)
    ]
    assert reasons == [
        None,
        Reason.DISPATCHED,
        Reason.DISPATCHED,
        Reason.IN_FLIGHT,
        Reason.IN_FLIGHT,
    ]


def test_before_anything_was_kept_it_says_that_nothing_is() -> None:
    found = explain(make_schedule(), now=NOW, at=NOW - HOUR)
    assert (found.words, found.gates) == (NOTHING_KEPT, ())


def test_an_agent_s_past_is_its_commands() -> None:
    schedule, agent = make_schedule(), make_agent()
    make_schedule_agent(schedule, agent)
    tick(now=NOW)
    found = explain(schedule, now=NOW + HOUR, at=NOW + MINUTE, agent=agent)
    assert [command.agent_id for command in found.commands] == [agent.pk]
    assert explain(schedule, now=NOW + HOUR, at=NOW - MINUTE, agent=agent).commands == ()


def test_what_became_of_a_calendar_s_time_is_told() -> None:
    schedule = make_schedule(when={"calendar": {"at": "12:00"}}, tz="utc")
    Schedule.objects.update(next_fire_at=NOW)
    make_agent()
    Freeze.objects.update(is_set=True)
    tick(now=NOW)
    found = explain(schedule, now=NOW + HOUR, at=NOW + timedelta(seconds=30))
    assert "the time 2026-12-01 12:00 UTC was skipped: frozen" in found.notes


# ----------------------------------------------------------------------------- the future


def test_the_future_is_today_s_facts_at_that_time_and_says_so() -> None:
    schedule = make_schedule(tz="utc", constraints={"window": "22:00-05:00"})
    make_schedule_agent(schedule, make_agent())
    found = explain(schedule, now=NOW, at=NOW + 11 * HOUR)
    assert (found.tense, found.reason) == (Tense.FUTURE, Reason.DISPATCHED)
    assert any("what is known now" in note for note in found.notes)


def test_a_freeze_to_come_is_known() -> None:
    schedule = make_schedule()
    make_schedule_agent(schedule, make_agent())
    Freeze.objects.update(is_set=True, starts="2026-12-20", tz="utc")
    assert explain(schedule, now=NOW).reason is Reason.DISPATCHED
    found = explain(schedule, now=NOW, at=NOW + timedelta(days=20))
    assert found.reason is Reason.FROZEN


@pytest.mark.parametrize(
    ("minutes", "reason"), [(0, Reason.DISPATCHED), (1, Reason.ALL_DONE), (60, Reason.ALL_DONE)]
)
def test_a_calendar_is_due_in_the_minute_of_its_time(minutes: int, reason: Reason) -> None:
    schedule = make_schedule(when={"calendar": {"at": "12:00"}}, tz="utc")
    Schedule.objects.update(next_fire_at=NOW + 24 * HOUR)
    make_agent()
    at = NOW + 24 * HOUR + minutes * MINUTE
    found = explain(schedule, now=NOW, at=at)
    assert found.reason is reason


def test_a_schedule_that_cannot_be_read_says_so() -> None:
    schedule = make_schedule()
    Schedule.objects.update(manifest={"id": 1}, fingerprint="broken")
    found = explain(schedule, now=NOW)
    assert found.reason is Reason.ERROR


def test_explaining_costs_the_same_queries_for_one_agent_and_for_many() -> None:
    counts = []
    for agents in (1, 30):
        schedule = make_schedule()
        for _ in range(agents):
            make_schedule_agent(schedule, make_agent())
        with CaptureQueriesContext(connection) as queries:
            explain(schedule, now=NOW)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 6


# ---------------------------------------------------------------------------- the command


def told(*arguments: str) -> str:
    out = StringIO()
    call_command("explain", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_prints_gates_counts_and_agents() -> None:
    schedule = make_schedule("nightly")
    make_schedule_agent(schedule, make_agent("pc-x", last_seen_at=None))
    text = told("NIGHTLY")
    assert "nobody alive: 1 of 1" in text
    assert "[open  ] frozen" in text
    assert "[CLOSED] nobody alive" in text
    assert "pc-x: never heard" in text


def test_the_command_looks_at_one_pc_and_at_another_time() -> None:
    schedule, agent = make_schedule("nightly"), make_agent("pc-y")
    make_schedule_agent(schedule, agent)
    text = told("nightly", "--agent", "PC-Y", "--at", "2099-01-01")
    assert "(future)" in text
    assert "pc-y:" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope",), 'there is no schedule "nope"'),
        (("nightly", "--agent", "nope"), 'there is no PC "nope"'),
        (("nightly", "--at", "soon"), "--at:"),
    ],
)
def test_the_command_says_what_it_does_not_know(arguments: tuple[str, ...], message: str) -> None:
    make_schedule("nightly")
    with pytest.raises(CommandError, match=message):
        told(*arguments)
