"""Freezing the fleet, and thawing it."""

from datetime import timedelta

import pytest

from fleet.flow.freeze import read_freeze
from fleet.models import Freeze
from fleet.operations.freezing import clear_freeze, freeze_document, set_freeze
from fleet.rules.refusals import Conflict, Invalid
from scheduler.models import AuditEntry
from scheduler.public import Actor
from tests.fleet.make import NOW
from tests.fleet.operations.audited import acts

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("asked")]
LATER = NOW + timedelta(hours=1)


def test_an_empty_freeze_holds_from_now_until_it_is_cleared(alice: Actor) -> None:
    set_freeze({}, actor=alice, now=NOW)
    assert read_freeze(NOW).frozen
    assert read_freeze(NOW + timedelta(days=4000)).frozen
    clear_freeze(actor=alice, now=LATER)
    assert not read_freeze(LATER).frozen
    assert acts() == [("freeze", "freeze", "freeze"), ("thaw", "freeze", "freeze")]


def test_a_freeze_keeps_what_was_written_and_by_whom(alice: Actor) -> None:
    document = {"from": "2026-12-20", "until": "2027-01-05", "reason": "holidays", "tz": "utc"}
    row = set_freeze({"freeze": document}, actor=alice, now=NOW)
    assert (row.is_set, row.set_by, row.set_at) == (True, "alice", NOW)
    assert freeze_document() == {"freeze": document}
    entry = AuditEntry.objects.get()
    assert (entry.before, entry.after, entry.reason) == (
        {"freeze": "off"},
        {"freeze": document},
        "holidays",
    )


def test_setting_the_same_freeze_again_is_no_act(alice: Actor) -> None:
    set_freeze({"reason": "x"}, actor=alice, now=NOW)
    set_freeze({"reason": "x"}, actor=alice, now=LATER)
    assert acts() == [("freeze", "freeze", "freeze")]


def test_a_bad_freeze_is_refused_and_the_old_one_stays(alice: Actor) -> None:
    set_freeze({"reason": "x"}, actor=alice, now=NOW)
    with pytest.raises(Invalid) as caught:
        set_freeze({"freeze": {"from": "soon", "till": "x"}}, actor=alice, now=LATER)
    assert [problem.path for problem in caught.value.problems] == ["freeze.from", "freeze.till"]
    assert freeze_document() == {"freeze": {"reason": "x"}}


def test_off_clears(alice: Actor) -> None:
    set_freeze({}, actor=alice, now=NOW)
    set_freeze({"freeze": "off"}, actor=alice, now=LATER)
    assert freeze_document() == {"freeze": "off"}


def test_clearing_without_a_freeze_is_no_error_and_no_act(alice: Actor) -> None:
    clear_freeze(actor=alice, now=NOW)
    assert acts() == []


def test_a_freeze_without_a_row_is_thawed_by_a_valid_one_alone(alice: Actor) -> None:
    Freeze.objects.all().delete()
    with pytest.raises(Conflict, match="cannot be read"):
        clear_freeze(actor=alice, now=NOW)
    assert read_freeze(NOW).frozen
    set_freeze({"until": "2026-12-02", "tz": "utc"}, actor=alice, now=NOW)
    clear_freeze(actor=alice, now=NOW)
    assert not read_freeze(NOW).frozen


def test_a_freeze_with_a_corrupt_bound_is_thawed_by_a_valid_one_alone(alice: Actor) -> None:
    Freeze.objects.update(is_set=True, ends="garbage")
    with pytest.raises(Conflict):
        clear_freeze(actor=alice, now=NOW)
    set_freeze({}, actor=alice, now=NOW)
    clear_freeze(actor=alice, now=NOW)
    assert not read_freeze(NOW).frozen


def test_after_a_freeze_and_after_a_thaw_all_schedules_are_looked_at(
    alice: Actor, asked: list[tuple[str, str | None]]
) -> None:
    set_freeze({}, actor=alice, now=NOW)
    clear_freeze(actor=alice, now=LATER)
    assert asked == [("fleet.tick", "by hand")] * 2
