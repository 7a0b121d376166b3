"""A body ended: what becomes of its task, without a database."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.rules.fire import Retry
from scheduler.rules.misfire import Misfire
from scheduler.rules.outcomes import Failed, Row, Succeeded, conclude
from scheduler.rules.states import Outcome, Reason, TaskState
from scheduler.rules.timing import Recurrence

NOW = datetime(2026, 3, 2, 8, 2, tzinfo=UTC)
EVERY_5 = Recurrence("*/5 * * * *")
ONCE = Row(
    recurrence=None,
    misfire=Misfire.ONCE,
    occurrence_at=None,
    extra=False,
    retry_count=0,
    replaced=False,
    next_input=None,
    rerun=False,
    rerun_not_before=None,
    dropped=0,
    cancelling=False,
    waits_for=0,
)
DAILY = replace(ONCE, recurrence=EVERY_5, occurrence_at=NOW.replace(minute=0))


@pytest.mark.parametrize(
    ("row", "ended", "policy", "state", "outcome", "settles"),
    [
        (ONCE, Succeeded(), None, TaskState.FINISHED, Outcome.SUCCEEDED, True),
        (ONCE, Failed("x"), None, TaskState.FAILED, Outcome.FAILED, True),
        (ONCE, Failed("x"), Retry(1, 5, 5), TaskState.PENDING, Outcome.RETRYING, False),
        (ONCE, Failed("x", permanent=True), Retry(), TaskState.FAILED, Outcome.FAILED, True),
        (DAILY, Succeeded(), None, TaskState.PENDING, Outcome.SUCCEEDED, True),
        (DAILY, Failed("x"), None, TaskState.PENDING, Outcome.FAILED, True),
        (replace(ONCE, rerun=True), Succeeded(), None, TaskState.PENDING, Outcome.SUCCEEDED, False),
        (replace(ONCE, rerun=True), Failed("x"), None, TaskState.FAILED, Outcome.FAILED, True),
        (replace(DAILY, cancelling=True), Succeeded(), None, TaskState.CANCELLED,
         Outcome.SUCCEEDED, True),
    ],
)  # fmt: skip
def test_where_a_task_goes(
    row: Row,
    ended: Succeeded | Failed,
    policy: Retry | None,
    state: TaskState,
    outcome: Outcome,
    *,
    settles: bool,
) -> None:
    transition = conclude(ended, row, policy, now=NOW)

    assert transition.changes["state"] is state
    assert (transition.outcome, transition.settles) == (outcome, settles)


def test_the_policy_of_the_claim_decides_and_the_row_says_what_follows() -> None:
    used_up = replace(DAILY, retry_count=2)

    transition = conclude(Failed("x"), used_up, Retry(2, 1, 1), now=NOW)

    assert transition.hook_count == 2
    assert transition.changes["due_at"] == NOW.replace(minute=5)
    assert transition.changes["retry_count"] == 0


def test_a_cron_that_cannot_be_read_sets_the_task_aside() -> None:
    broken = replace(DAILY, recurrence=Recurrence("61 * * * *"))

    changes = conclude(Succeeded(), broken, None, now=NOW).changes

    assert (changes["state"], changes["reason"]) == (TaskState.QUARANTINED, Reason.BAD_CRON)


ROWS = st.builds(
    Row,
    recurrence=st.sampled_from([None, EVERY_5]),
    misfire=st.sampled_from(list(Misfire)),
    occurrence_at=st.sampled_from([None, NOW - timedelta(minutes=2), NOW + timedelta(minutes=3)]),
    extra=st.booleans(),
    retry_count=st.integers(0, 3),
    replaced=st.booleans(),
    next_input=st.just("new"),
    rerun=st.booleans(),
    rerun_not_before=st.sampled_from([None, NOW - timedelta(hours=1), NOW + timedelta(hours=1)]),
    dropped=st.just(0),
    cancelling=st.booleans(),
    waits_for=st.integers(0, 2),
)
ENDS = st.sampled_from([Succeeded(), Failed("x"), Failed("x", permanent=True)])


@given(row=ROWS, ended=ENDS, policy=st.sampled_from([None, Retry(2, 5, 5)]))
def test_every_end_leaves_a_row_that_the_tables_accept(
    row: Row, ended: Succeeded | Failed, policy: Retry | None
) -> None:
    changes = conclude(ended, row, policy, now=NOW).changes
    waits = changes.get("waits_for", row.waits_for)

    if changes["state"] is TaskState.PENDING:
        assert (changes["due_at"] is None) == (waits > 0)
    else:
        assert changes["due_at"] is None
        assert changes["rerun"] is False
    assert changes["replaced"] is False
    assert changes["cancelling"] is False
    assert not changes["ready"] or (changes["due_at"] is not None and changes["due_at"] <= NOW)


@given(row=ROWS, ended=ENDS)
def test_only_a_task_that_goes_on_takes_the_new_input(row: Row, ended: Succeeded | Failed) -> None:
    changes = conclude(ended, row, None, now=NOW).changes

    goes_on = changes["state"] is TaskState.PENDING
    assert ("input" in changes) == (goes_on and row.replaced)
