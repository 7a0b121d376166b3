"""What the ticks of a schedule decided, one after the other."""

import pytest

from fleet.flow.evaluations import Verdict, record
from fleet.models import Evaluation
from fleet.rules.firing import Reason
from tests.fleet.make import MINUTE, NOW, make_schedule

pytestmark = pytest.mark.django_db


def test_a_look_that_began_earlier_and_ended_later_follows_the_one_in_force() -> None:
    schedule = make_schedule()
    record(schedule.pk, Verdict(Reason.DISPATCHED), now=NOW)

    assert record(schedule.pk, Verdict(Reason.IN_FLIGHT), now=NOW - MINUTE) is True

    spans = Evaluation.objects.order_by("pk").values_list("reason", "since", "until")
    assert list(spans) == [("dispatched", NOW, NOW), ("in flight", NOW, None)]
