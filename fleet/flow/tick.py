"""One pass over the schedules: look, decide, act, and keep the reason.

An error is contained to its schedule: it is logged, kept as the schedule's reason, and the
others go on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import transaction

from fleet.flow.attention import calendars_to_look_at, hold_all, schedules_to_look_at
from fleet.flow.dispatch import NothingToDispatchError, dispatch
from fleet.flow.evaluate import Evaluated, evaluate, schedules_to_evaluate
from fleet.flow.evaluations import Verdict, record
from fleet.flow.freeze import read_freeze
from fleet.flow.occurrences import Due, due_occurrence, link, settle_occurrence, skip
from fleet.flow.planning import plan_of
from fleet.flow.rearming import rearm_calendars
from fleet.flow.steadiness import begin_tick, end_tick, is_steady, park_silent
from fleet.flow.targets import correct_due_times
from fleet.flow.waiting_for import missing_from
from fleet.flow.waves import release_due_waves
from fleet.models import Execution, Schedule, Shape
from fleet.rules.firing import Decision, Dispatch, Look, Reason, Skip, decide, next_look
from fleet.rules.manifest import ManifestError
from scheduler.rules.contained import contained
from scheduler.rules.misfire import MOST_CATCH_UPS

# A schedule that failed is tried again after a while, not every minute.
AFTER_AN_ERROR = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class TickReport:
    """What a tick did."""

    looked_at: int = 0
    fired: int = 0
    held: int = 0
    waves: int = 0

    @property
    def did_nothing(self) -> bool:
        """Whether there is nothing to tell."""
        return self == TickReport()


def tick(*, now: datetime) -> TickReport:
    """Look at every schedule that may have something to do."""
    mark = begin_tick(now=now)
    rearm_calendars(mark, now=now)
    freeze = read_freeze(now)
    after_thaw = mark.was_frozen and not freeze.frozen
    if freeze.frozen:
        keys, held = calendars_to_look_at(now=now), hold_all(freeze, now=now)
    else:
        keys, held = schedules_to_look_at(now=now, after_thaw=after_thaw), 0
    steady = is_steady(mark, now=now)
    fired = sum(look_at(key, now=now, parks_silent=steady) for key in keys)
    # Waves go out by tasks of their own; those that a freeze held back have none left.
    waves = release_due_waves(now=now) if after_thaw else 0
    end_tick(mark, was_frozen=freeze.frozen, now=now)
    return TickReport(len(keys), fired, held, waves)


def look_at(schedule_id: int, *, now: datetime, parks_silent: bool = False) -> int:
    """Evaluate one schedule and act on it, contained; return how many executions it made.

    With `parks_silent`, agents that are due and silent are taken out of the way.
    """
    fired, parks = 0, False
    # One transaction for each nominal time of a calendar that catches up.
    for _ in range(MOST_CATCH_UPS + 1):
        outcome = _contained_evaluation(schedule_id, now=now)
        if outcome is None:
            _keep_error(schedule_id, now=now)
            return fired
        fired, parks = fired + outcome.fired, outcome.parks
        if not outcome.again:
            break
    if parks_silent and parks:
        with contained("agents parked", schedule=schedule_id):
            park_silent(schedule_id, now=now)
    return fired


@dataclass(frozen=True, slots=True)
class _Outcome:
    fired: int = 0
    # A calendar has another nominal time to catch up with.
    again: bool = False
    parks: bool = False


def _contained_evaluation(schedule_id: int, *, now: datetime) -> _Outcome | None:
    """The outcome of one evaluation; None if it failed."""
    outcomes = []
    with contained("schedule evaluated", schedule=schedule_id):
        with transaction.atomic():
            outcome = _evaluate_one(schedule_id, now=now)
        # Only what is committed has happened.
        outcomes.append(outcome)
    return outcomes[0] if outcomes else None


def _evaluate_one(schedule_id: int, *, now: datetime) -> _Outcome:
    schedules = schedules_to_evaluate().select_for_update(of=("self",), no_key=True)
    schedule = schedules.filter(pk=schedule_id).first()
    if schedule is None:
        return _Outcome()
    try:
        found = evaluate(schedule, now=now, freeze=read_freeze(now))
    except ManifestError as error:
        reason = Reason.ERROR if schedule.enabled else Reason.DISABLED
        _keep(schedule, Verdict(reason, str(error)), _after_error(now), now=now)
        return _Outcome()
    if schedule.shape == Shape.CALENDAR and schedule.enabled and not schedule.runs_on_agent:
        return _on_calendar(found, now=now)
    return _on_condition(found, now=now)


def _on_condition(found: Evaluated, *, now: datetime) -> _Outcome:
    """A reconcile schedule: whoever is wanted is sent the job."""
    decided = decide(found.facts)
    execution = None
    if found.schedule.shape == Shape.PER_PC:
        correct_due_times(found.schedule.pk, found.facts)
    if isinstance(decided, Dispatch):
        try:
            execution = dispatch(plan_of(found, decided), now=now)
        except NothingToDispatchError as error:
            # Somebody else was faster with the same agents.
            decided = Skip(Reason.IN_FLIGHT, str(error), None, decided.counts)
    verdict = _verdict(decided, missing_from(found.manifest, now=now))
    _keep(found.schedule, verdict, next_look(found.facts, decided), now=now)
    return _Outcome(fired=execution is not None, parks=found.schedule.shape == Shape.PER_PC)


def _on_calendar(found: Evaluated, *, now: datetime) -> _Outcome:
    """A calendar: the nominal time that is due is fired, or skipped for a closed gate."""
    schedule = found.schedule
    due = due_occurrence(schedule, found.manifest, now=now)
    facts = replace(found.facts, is_due=due is not None, next_fire_at=schedule.next_fire_at)
    decided = decide(facts)
    execution = None
    if due is not None:
        decided, execution = _fire(found, decided, due, now=now)
    verdict = _verdict(decided, missing_from(found.manifest, now=now))
    _keep(schedule, verdict, next_look(facts, decided), now=now)
    next_at = schedule.next_fire_at
    return _Outcome(fired=execution is not None, again=next_at is not None and next_at <= now)


def _fire(
    found: Evaluated, decided: Decision, due: Due, *, now: datetime
) -> tuple[Decision, Execution | None]:
    """Settle a nominal time, the occurrence first: whoever writes that one fires."""
    if isinstance(decided, Skip):
        settle_occurrence(found.schedule, found.manifest, due, skipped=decided.reason, now=now)
        return decided, None
    occurrence = settle_occurrence(found.schedule, found.manifest, due, now=now)
    if occurrence is None:
        return Skip(Reason.ALL_DONE, "it has fired for this time", None, {}), None
    try:
        execution = dispatch(plan_of(found, decided, nominal_at=due.nominal_at), now=now)
    except NothingToDispatchError as error:
        skip(occurrence, reason=str(error))
        return Skip(Reason.NO_TARGET, str(error), None, {}), None
    link(occurrence, execution.pk)
    return decided, execution


def _verdict(decided: Decision, missing: str) -> Verdict:
    match decided:
        case Dispatch(counts=counts):
            return Verdict(Reason.DISPATCHED, missing, None, _stored(counts))
        case Skip(reason, detail, opens_at, counts):
            words = "; ".join(part for part in (detail, missing) if part)
            return Verdict(reason, words, opens_at, _stored(counts))


def _stored(counts: Mapping[Reason, int]) -> dict[str, int]:
    return {reason.value: number for reason, number in counts.items()}


def _keep(schedule: Schedule, verdict: Verdict, look: Look, *, now: datetime) -> None:
    record(schedule.pk, verdict, now=now)
    if (schedule.look_at, schedule.held) != (look.at, look.held):
        Schedule.objects.filter(pk=schedule.pk).update(look_at=look.at, held=look.held)


def _keep_error(schedule_id: int, *, now: datetime) -> None:
    """What went wrong is in the log; the schedule says that something did."""
    with contained("evaluation kept", schedule=schedule_id), transaction.atomic():
        schedule = Schedule.objects.filter(pk=schedule_id).first()
        if schedule is not None:
            verdict = Verdict(Reason.ERROR, "the evaluation failed; the log has the details")
            _keep(schedule, verdict, _after_error(now), now=now)


def _after_error(now: datetime) -> Look:
    return Look(now + AFTER_AN_ERROR, held=True)
