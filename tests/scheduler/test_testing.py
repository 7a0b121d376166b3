"""The helpers for other applications' tests."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from scheduler import public
from scheduler.models import Task
from scheduler.public import NOTHING, Fire, Retry
from scheduler.testing import NeverIdleError, NothingPlannedError, stepped
from tests.scheduler.make import Recorder

pytestmark = pytest.mark.django_db
START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


@pytest.fixture
def body() -> Recorder:
    found = Recorder()
    public.kind("demo")(found)
    return found


def test_time_stands_still_and_starts_again() -> None:
    with stepped(START) as scheduler:
        assert timezone.now() == scheduler.now == START
        assert scheduler.advance(hours=1, seconds=1) == START + timedelta(seconds=3601)
        assert timezone.now() == START + timedelta(seconds=3601)
    assert timezone.now() > START + timedelta(days=1)


def test_without_a_time_it_stops_where_it_is() -> None:
    before = timezone.now()
    with stepped() as scheduler:
        assert before <= scheduler.now == timezone.now()


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="aware"), stepped(datetime(2026, 3, 2)):  # noqa: DTZ001
        pass


def test_what_is_due_runs_and_what_it_frees(body: Recorder) -> None:
    with stepped(START) as scheduler:
        first = public.request("demo", input=1)
        public.request("demo", input=2, depends_on=[first])
        public.request("demo", input=3, after=1)

        runs = scheduler.run_until_idle()

    assert [(run.input, run.outcome) for run in runs] == [(1, "succeeded"), (2, "succeeded")]
    assert body.inputs == [1, 2]


def test_a_failure_is_told_with_its_error(body: Recorder) -> None:
    body.always = lambda fire: 1 // 0
    with stepped(START) as scheduler:
        task = public.request("demo", key="k", retry=Retry(times=1, min=60))
        (first,) = scheduler.run_until_idle()
        assert scheduler.advance_to_next("demo", "k") == START + timedelta(seconds=60)
        (second,) = scheduler.run_until_idle()

    assert (first.task_id, first.attempt, first.outcome) == (task, 1, "failed, tried again")
    assert (second.attempt, second.outcome) == (2, "failed")
    assert second.error == "ZeroDivisionError: integer division or modulo by zero"
    assert "1 // 0" in second.trace


def test_the_next_occurrence_is_moved_to_and_then_run(body: Recorder) -> None:
    with stepped(START) as scheduler:
        public.request("demo", key="k", cron="20 4 * * *", tz="Europe/Budapest")

        due = scheduler.advance_to_next("demo", key="k")
        assert body.fires == []
        scheduler.run_until_idle()

    assert due == datetime(2026, 3, 3, 3, 20, tzinfo=UTC)
    assert [fire.occurrence_at for fire in body.fires] == [due]


def test_the_clock_is_never_moved_back(body: Recorder) -> None:
    with stepped(START) as scheduler:
        public.request("demo", at=START - timedelta(hours=1))

        assert scheduler.advance_to_next("demo") == START


def test_without_a_plan_there_is_nothing_to_move_to(body: Recorder) -> None:
    with stepped(START) as scheduler:
        public.request("demo", key="k")
        scheduler.run_until_idle()

        with pytest.raises(NothingPlannedError, match="no run of demo k is planned"):
            scheduler.advance_to_next("demo", "k")
        assert scheduler.now == START


def test_a_downtime_is_caught_up_once_and_a_runner_at_work_misses_nothing(body: Recorder) -> None:
    with stepped(START) as scheduler:
        public.request("demo", key="k", cron="0 * * * *")

        runs = scheduler.run_for(hours=3)
        assert [run.outcome for run in runs] == ["succeeded"] * 3
        scheduler.advance(hours=3)
        assert len(scheduler.run_until_idle()) == 1


def test_declared_tasks_are_registered_as_by_a_runner(body: Recorder) -> None:
    public.recurring("demo", key="k", cron="0 9 * * *")
    with stepped(START) as scheduler:
        scheduler.start()

        assert scheduler.advance_to_next("demo") == START + timedelta(hours=1)


def test_a_body_that_finds_nothing_to_do_leaves_no_run(body: Recorder) -> None:
    body.always = lambda fire: NOTHING
    with stepped(START) as scheduler:
        public.request("demo", key="k", cron="* * * * *")
        scheduler.advance(minutes=1)

        assert scheduler.run_until_idle() == []
    assert len(body.fires) == 1


def test_work_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.testing.MOST_BODIES", 10)

    @public.kind("again")
    def again(fire: Fire) -> None:
        public.request("again", key=fire.key)

    with stepped(START) as scheduler:
        public.request("again", key="k")
        with pytest.raises(NeverIdleError, match="10 bodies ran"):
            scheduler.run_until_idle()


def test_limited_and_paused_queues_are_kept(body: Recorder) -> None:
    with stepped(START) as scheduler:
        public.limit_queue("narrow", 1)
        public.pause_queue("shut")
        for queue in ("narrow", "narrow", "shut", "default"):
            public.request("demo", input=queue, queue=queue)

        scheduler.run_until_idle()

    assert sorted(map(str, body.inputs)) == ["default", "narrow", "narrow"]
    assert Task.objects.live().count() == 1
