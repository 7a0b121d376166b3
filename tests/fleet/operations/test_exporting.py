"""Exporting: what apply takes back without a difference."""

import pytest

from fleet.operations.applying import apply_documents
from fleet.operations.exporting import export_documents
from fleet.operations.freezing import set_freeze
from fleet.operations.jobs import save_job
from fleet.operations.schedules import save_schedule
from fleet.rules.apply_plan import Action, Given
from fleet.rules.document_writer import dump_yaml
from fleet.rules.documents import read_yaml
from fleet.rules.manifest import Kind
from fleet.rules.refusals import NotFound
from scheduler.public import Actor
from tests.fleet.make import NOW, make_agent, make_group
from tests.fleet.rules.manifest.documents import executing, job, schedule

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("asked")]
SCRIPT = "#!/bin/sh\n\n  echo 'a: b'  \n\techo 010 # x\n"


@pytest.fixture(autouse=True)
def _site(alice: Actor) -> None:
    make_group("office", make_agent("PC-1"))
    save_job(executing(script=SCRIPT) | {"description": "on: off"}, actor=alice, now=NOW)
    save_job(job(id="other", version="1.10"), actor=alice, now=NOW)
    save_schedule(schedule(tags=["null", "12:30"]), actor=alice, now=NOW)


def test_everything_is_exported_in_the_order_in_which_it_is_applied() -> None:
    assert [document["id"] for document in export_documents()] == [
        "office",
        "inventory",
        "other",
        "inventory-6h",
    ]


def test_what_is_exported_is_applied_without_a_difference(alice: Actor) -> None:
    set_freeze({"reason": "holidays", "until": "2027-01-05"}, actor=alice, now=NOW)
    text = dump_yaml(export_documents())
    plan = apply_documents(
        [Given("x", document) for document in read_yaml(text)], actor=alice, now=NOW
    )
    assert plan.count(Action.UNCHANGED) == len(plan.steps) == 5


def test_a_freeze_is_part_of_everything_only_while_one_is_set(alice: Actor) -> None:
    assert {"freeze": "off"} not in list(export_documents())
    set_freeze({}, actor=alice, now=NOW)
    assert list(export_documents())[-1] == {"freeze": {}}


def test_the_freeze_alone_is_exported_as_it_is() -> None:
    assert list(export_documents(Kind.FREEZE)) == [{"freeze": "off"}]


def test_keys_are_in_their_order_whatever_the_database_keeps() -> None:
    [document] = export_documents(Kind.SCHEDULE)
    assert list(document) == ["id", "when", "job_id", "target", "tags"]


def test_some_of_a_kind_are_exported_by_id_in_any_case() -> None:
    assert [one["id"] for one in export_documents(Kind.JOB, ["OTHER"])] == ["other"]
    assert [one["id"] for one in export_documents(Kind.GROUP)] == ["office"]


@pytest.mark.parametrize("kind", [Kind.JOB, Kind.SCHEDULE, Kind.GROUP])
def test_an_unknown_id_is_an_error(kind: Kind) -> None:
    with pytest.raises(NotFound, match=f'there is no {kind} "nope"'):
        list(export_documents(kind, ["nope"]))
