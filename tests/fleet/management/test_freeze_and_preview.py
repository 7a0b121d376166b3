"""`freeze` and `preview`."""

import pytest
import time_machine

from fleet.models import Freeze
from scheduler.models import AuditEntry
from tests.fleet.make import make_schedule
from tests.fleet.management.running import run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_noon")]


@pytest.fixture
def at_noon() -> object:
    """The first of December 2026, 12:00 UTC."""
    with time_machine.travel("2026-12-01T12:00:00Z", tick=False):
        yield


def test_the_freeze_is_set_shown_and_cleared() -> None:
    assert run("freeze", "status").out == ["not frozen"]
    said = run("freeze", "set", "--reason", "holidays", "--until", "2027-01-05", "--tz", "utc")
    assert said.out == ["frozen: holidays", "until 2027-01-05 00:00 UTC"]
    assert run("freeze", "status").out == said.out
    assert run("freeze", "clear").out == ["not frozen"]
    assert [row.action for row in AuditEntry.objects.order_by("pk")] == ["freeze", "thaw"]


def test_a_freeze_to_come_says_when() -> None:
    said = run("freeze", "set", "--reason", "x", "--from", "2026-12-20", "--tz", "utc")
    assert said.out == ["not frozen", "freezes at 2026-12-20 00:00 UTC"]


def test_a_bad_bound_is_refused_and_nothing_is_frozen() -> None:
    said = run("freeze", "set", "--reason", "x", "--from", "soon")
    assert said.failure is not None
    assert said.failure.startswith('freeze.from: "soon" is no date')
    assert run("freeze", "status").out == ["not frozen"]


def test_a_freeze_needs_a_reason() -> None:
    assert run("freeze", "set").failure == ("Error: the following arguments are required: --reason")


def test_a_freeze_that_cannot_be_read_is_shown_and_not_cleared() -> None:
    Freeze.objects.update(is_set=True, starts="garbage")
    assert run("freeze", "status").out[0].startswith("frozen: unreadable")
    said = run("freeze", "clear")
    assert said.failure is not None
    assert "set a valid one first" in said.failure


def test_a_preview_shows_the_zone_and_utc() -> None:
    make_schedule(
        "greeting", when={"calendar": {"at": "09:00", "days": ["mon-fri"]}}, tz="Europe/Budapest"
    )
    assert run("preview", "GREETING", "--count", "2").out == [
        "greeting: at 09:00 [mon-fri] in Europe/Budapest",
        "Wed 2026-12-02 09:00 CET   2026-12-02 08:00 UTC",
        "Thu 2026-12-03 09:00 CET   2026-12-03 08:00 UTC",
    ]


def test_a_preview_of_a_reconcile_schedule_says_what_it_does() -> None:
    make_schedule("inventory", tz="utc", enabled=False)
    assert run("preview", "inventory").out == [
        "inventory: per_pc every 6h in UTC, disabled",
        "Looks every minute and runs where a success is missing or too old.",
    ]


def test_a_preview_notes_what_never_runs() -> None:
    when = {"calendar": {"at": "09:00"}}
    make_schedule("x", when=when, tz="utc", constraints={"window": "22:00-05:00"})
    said = run("preview", "x")
    assert said.out[1].startswith("No fires: ")
    assert said.err == ["note: fires outside its window 22:00-05:00: it never runs"]


def test_a_preview_of_nothing_is_an_error() -> None:
    assert run("preview", "nope").failure == 'there is no schedule "nope"'
    make_schedule("x")
    said = run("preview", "x", "--count", "51")
    assert said.failure is not None
    assert "--count" in said.failure
