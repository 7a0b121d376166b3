"""Kinds: unknown and duplicate names are errors."""

import pytest

from scheduler import public
from scheduler.models import Task
from scheduler.registry import REGISTRY, DuplicateKindError, UnknownKindError
from scheduler.rules.fire import Fire
from tests.clock import ManualClock


def first(fire: Fire) -> object:
    return None


def second(fire: Fire) -> object:
    return None


def test_a_name_has_one_handler() -> None:
    public.kind("demo")(first)
    public.kind("demo")(first)

    with pytest.raises(DuplicateKindError, match=r"test_registry\.second"):
        public.kind("demo")(second)

    assert REGISTRY.get("demo").handler is first


@pytest.mark.django_db
def test_a_request_for_an_unknown_kind_is_refused_with_those_that_are_known(
    clock: ManualClock,
) -> None:
    public.kind("reports.nightly")(first)

    with pytest.raises(UnknownKindError, match=r"'reports\.nigthly'.*reports\.nightly"):
        public.request("reports.nigthly", now=clock.now)

    assert Task.objects.count() == 0


@pytest.mark.django_db
def test_a_kind_names_the_queue_of_its_tasks(clock: ManualClock) -> None:
    public.kind("demo", queue="slow")(first)

    public.request("demo", now=clock.now)
    public.request("demo", queue="quick", now=clock.now)

    assert list(Task.objects.order_by("pk").values_list("queue", flat=True)) == ["slow", "quick"]
