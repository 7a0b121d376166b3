"""Next times follow the zone data and the server's zone."""

from datetime import datetime
from unittest.mock import patch

import pytest
from pytest_django import Settings

from fleet.flow.tick import tick
from fleet.models import Execution, Schedule
from tests.fleet.make import MINUTE, NOW, make_agent, make_schedule

pytestmark = pytest.mark.django_db
HOUR = 60 * MINUTE


def noon(tz: str, next_fire_at: datetime) -> Schedule:
    schedule = make_schedule(when={"calendar": {"at": "18:00"}}, tz=tz)
    Schedule.objects.filter(pk=schedule.pk).update(next_fire_at=next_fire_at)
    return schedule


def test_11_another_zone_of_the_server_moves_the_next_time_and_fires_nothing(
    settings: Settings,
) -> None:
    schedule = noon("local", NOW + 6 * HOUR)
    make_agent()
    tick(now=NOW)
    settings.TIME_ZONE = "America/New_York"
    tick(now=NOW + MINUTE)
    schedule.refresh_from_db()
    assert schedule.next_fire_at == NOW + 11 * HOUR  # 18:00 EST
    assert not Execution.objects.exists()


def test_new_zone_data_move_the_next_time_once() -> None:
    schedule = noon("Europe/Budapest", NOW + 6 * HOUR)  # computed an hour wrong
    tick(now=NOW)
    schedule.refresh_from_db()
    assert schedule.next_fire_at == NOW + 5 * HOUR
    Schedule.objects.update(next_fire_at=NOW + 6 * HOUR)
    tick(now=NOW + MINUTE)
    schedule.refresh_from_db()
    assert schedule.next_fire_at == NOW + 6 * HOUR  # nothing changed, nothing is computed
    with patch("fleet.flow.rearming.TZDATA_VERSION", "2027a"):
        tick(now=NOW + 2 * MINUTE)
    schedule.refresh_from_db()
    assert schedule.next_fire_at == NOW + 5 * HOUR


def test_a_time_that_is_due_stays_due() -> None:
    schedule = noon("utc", NOW)
    make_agent()
    assert tick(now=NOW).fired == 1
    schedule.refresh_from_db()
    assert schedule.next_fire_at == NOW + 6 * HOUR


def test_a_calendar_that_cannot_be_read_does_not_stop_the_others() -> None:
    broken, good = noon("utc", NOW + HOUR), noon("utc", NOW + HOUR)
    Schedule.objects.filter(pk=broken.pk).update(manifest={"id": 1}, fingerprint="broken")
    tick(now=NOW)
    good.refresh_from_db()
    assert good.next_fire_at == NOW + 6 * HOUR
