"""A run with an Idempotency-Key is made once, and a loop of runs is slowed down."""

from typing import Any
from unittest import mock

import pytest
from django.core.cache import cache

from fleet.models import Execution, Freeze
from fleet.operator_api.runs import RunsAllowed
from tests.fleet.make import make_agent, make_job, make_schedule
from tests.fleet.operator_api.callers import Caller, errors, make_user, ok

pytestmark = pytest.mark.django_db
RUN = {"target": {"all": True}}


@pytest.fixture
def operator() -> Caller:
    make_job("patch")
    make_agent("pc-1")
    return Caller(make_user("operator"))


def run(caller: Caller, key: str, body: object = None) -> Any:
    return caller.post("jobs/patch/exec/", body or RUN, **{"idempotency-key": key})


def test_a_repeated_run_is_answered_with_the_first(operator: Caller) -> None:
    first = ok(run(operator, "ticket-17"), 201)
    second = ok(run(operator, "ticket-17"), 200)

    assert (first["deduplicated"], second["deduplicated"]) == (False, True)
    assert second["id"] == first["id"]
    assert Execution.objects.count() == 1


def test_without_a_key_every_run_counts(operator: Caller) -> None:
    for _ in range(2):
        ok(operator.post("jobs/patch/exec/", RUN), 201)

    assert Execution.objects.count() == 2


def test_a_key_that_stood_for_another_run_is_a_conflict(operator: Caller) -> None:
    ok(run(operator, "k"), 201)

    assert run(operator, "k", {"target": {"pcs": ["pc-1"]}}).status_code == 409
    assert Execution.objects.count() == 1


def test_a_run_that_a_freeze_refused_may_be_sent_again(operator: Caller) -> None:
    Freeze.objects.filter(pk=1).update(is_set=True)
    assert run(operator, "k").status_code == 409
    Freeze.objects.filter(pk=1).update(is_set=False)

    assert ok(run(operator, "k"), 201)["deduplicated"] is False


def test_a_fire_is_made_once_too(operator: Caller) -> None:
    make_schedule("nightly")

    first = ok(operator.post("schedules/nightly/fire/", **{"idempotency-key": "k"}), 201)
    second = ok(operator.post("schedules/nightly/fire/", **{"idempotency-key": "k"}), 200)

    assert second["id"] == first["id"]
    assert (first["schedule"], first["origin"]) == ("nightly", "fire")


@pytest.mark.parametrize("key", ["", "x" * 201, "é", "a\tb"])
def test_a_key_that_is_none_is_refused(operator: Caller, key: str) -> None:
    answer = run(operator, key)

    assert answer.status_code == 400
    assert list(errors(answer)) == ["Idempotency-Key"]
    assert Execution.objects.count() == 0


def test_a_loop_of_runs_is_told_to_wait(operator: Caller) -> None:
    cache.clear()
    with mock.patch.object(RunsAllowed, "rate", "2/min"):
        answers = [operator.post("jobs/patch/exec/", RUN) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [201, 201, 429]
    assert 1 <= int(answers[2].headers["Retry-After"]) <= 60
    assert Execution.objects.count() == 2
