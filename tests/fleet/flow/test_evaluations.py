"""Reasons: what is in force, and the history of changes."""

import pytest
from pytest_django import DjangoAssertNumQueries

from fleet.flow.evaluations import Verdict, record, record_for
from fleet.models import Evaluation
from fleet.rules.firing import Reason
from tests.fleet.make import MINUTE, NOW, make_schedule

pytestmark = pytest.mark.django_db


def test_the_first_reason_is_in_force_from_then_on() -> None:
    schedule = make_schedule()
    verdict = Verdict(Reason.ALL_DONE, "3 of 3", NOW + MINUTE, {"all done": 3})
    assert record(schedule.pk, verdict, now=NOW) is True
    standing = Evaluation.objects.get()
    assert (standing.since, standing.until, standing.reason) == (NOW, None, "all done")
    assert (standing.detail, standing.opens_at) == ("3 of 3", NOW + MINUTE)
    assert standing.counts == {"all done": 3}


def test_the_same_reason_goes_on_with_today_s_values() -> None:
    schedule = make_schedule()
    record(schedule.pk, Verdict(Reason.IN_FLIGHT, "1 of 3"), now=NOW)
    assert record(schedule.pk, Verdict(Reason.IN_FLIGHT, "2 of 3"), now=NOW + MINUTE) is False
    standing = Evaluation.objects.get()
    assert (standing.since, standing.detail) == (NOW, "2 of 3")


def test_nothing_new_is_not_written(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    schedule = make_schedule()
    verdict = Verdict(Reason.IN_FLIGHT, "1 of 3")
    record(schedule.pk, verdict, now=NOW)
    with django_assert_num_queries(1):
        record(schedule.pk, verdict, now=NOW + MINUTE)


def test_another_reason_ends_the_one_before() -> None:
    schedule = make_schedule()
    for minute, reason in enumerate([Reason.DISPATCHED, Reason.IN_FLIGHT, Reason.ALL_DONE]):
        record(schedule.pk, Verdict(reason), now=NOW + minute * MINUTE)
    spans = Evaluation.objects.order_by("since").values_list("reason", "since", "until")
    assert list(spans) == [
        ("dispatched", NOW, NOW + MINUTE),
        ("in flight", NOW + MINUTE, NOW + 2 * MINUTE),
        ("all done", NOW + 2 * MINUTE, None),
    ]


def test_one_reason_for_many_costs_two_queries(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    keys = [make_schedule().pk for _ in range(20)]
    record(keys[0], Verdict(Reason.ALL_DONE), now=NOW)
    with django_assert_num_queries(2):
        record_for(keys, Verdict(Reason.FROZEN, "frozen"), now=NOW + MINUTE)
    assert Evaluation.objects.filter(until=None, reason="frozen").count() == 20
    assert Evaluation.objects.exclude(until=None).get().until == NOW + MINUTE


def test_a_long_detail_is_cut_to_what_the_column_holds() -> None:
    schedule = make_schedule()
    record(schedule.pk, Verdict(Reason.ERROR, "x" * 5000), now=NOW)
    assert len(Evaluation.objects.get().detail) == 1000
