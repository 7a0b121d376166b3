"""Run a job now, on whom a person names."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from fleet.flow.dispatch import NothingToDispatchError, dispatch
from fleet.flow.freeze import read_freeze
from fleet.flow.manifests import job_manifest
from fleet.flow.plans import DispatchPlan, write_target
from fleet.flow.rosters import unknown_names
from fleet.models import Execution, Job, JobRevision, Origin
from fleet.operations.inputs import valid
from fleet.rules.manifest import parse_target
from fleet.rules.params import param_problems
from fleet.rules.problems import Problem
from fleet.rules.refusals import Conflict, Frozen, Invalid, NotFound
from fleet.rules.run_deadline import DeadlineError, parse_run_deadline
from fleet.rules.targets import Target
from scheduler.public import Actor, record_act


def run_job(
    job: Job,
    *,
    target: object,
    actor: Actor,
    now: datetime,
    deadline: str | None = None,
    reason: str = "",
    override_freeze: bool = False,
    params: Mapping[str, str] | None = None,
) -> Execution:
    """Dispatch the job's current revision to everybody of `target`, alive or not.

    They have until `deadline` (such as `4h`, or an instant; seven days without one) to start it.
    A job that requires approval waits for a second person. Invalid, Conflict, Frozen, NotFound.
    """
    wish = _Wish(valid(parse_target, target), deadline, reason, override_freeze, dict(params or {}))
    with transaction.atomic():
        plan = _plan(_existing(job), wish, actor=actor, now=now)
        require_thaw(now, override_freeze=override_freeze)
        execution = dispatched(plan, now=now)
        _record(execution, plan, actor=actor, now=now)
    return execution


@dataclass(frozen=True, slots=True)
class _Wish:
    target: Target
    deadline: str | None
    reason: str
    override_freeze: bool
    params: dict[str, str]


def _plan(job: Job, wish: _Wish, *, actor: Actor, now: datetime) -> DispatchPlan:
    """The plan of a run; Invalid names everything that is wrong with the wish."""
    revision = runnable_revision(job)
    manifest = job_manifest(revision)
    problems = [
        *_nobody(wish.target),
        *param_problems(manifest.execute.params, wish.params),
        *reason_problems(wish.reason, override_freeze=wish.override_freeze),
    ]
    deadline_at = _deadline(wish.deadline, now, problems)
    if problems:
        raise Invalid(problems)
    return DispatchPlan(
        revision=revision,
        origin=Origin.MANUAL,
        actor=actor.name,
        actor_id=actor.user_id,
        target=wish.target,
        reason=wish.reason,
        override_freeze=wish.override_freeze,
        needs_approval=manifest.require_approval,
        deadline_at=deadline_at,
        params=wish.params,
    )


def _record(execution: Execution, plan: DispatchPlan, *, actor: Actor, now: datetime) -> None:
    record_act(
        actor,
        "run",
        object_kind="job",
        object_id=plan.revision.job.slug,
        after={
            "execution": str(execution.pk),
            "version": plan.revision.version,
            "target": write_target(plan.target),
            "override_freeze": plan.override_freeze,
        },
        reason=plan.reason,
        now=now,
    )


def dispatched(plan: DispatchPlan, *, now: datetime) -> Execution:
    """The execution of the plan; Conflict where there is nobody to dispatch to."""
    try:
        return dispatch(plan, now=now)
    except NothingToDispatchError as error:
        raise Conflict(str(error)) from None


def runnable_revision(job: Job) -> JobRevision:
    """The revision that runs; Conflict where none may."""
    if job.revoked_at is not None:
        raise Conflict(f'the job "{job.slug}" is revoked; take the revocation back first')
    if job.current is None:
        raise Conflict(f'no revision of the job "{job.slug}" is approved yet')
    return job.current


def require_thaw(now: datetime, *, override_freeze: bool) -> None:
    """Frozen while the fleet is, unless somebody overrides that. Call it in a transaction."""
    state = read_freeze(now, lock=True)
    if state.frozen and not override_freeze:
        raise Frozen(f"the fleet is {state.words}")


def reason_problems(reason: str, *, override_freeze: bool) -> Iterator[Problem]:
    """Whoever overrides a freeze says why."""
    if override_freeze and not reason.strip():
        yield Problem("reason", "say why the freeze is overridden")


def _existing(job: Job) -> Job:
    # Held, so that nobody revokes, edits or deletes the job before its commands are written.
    found = Job.objects.filter(pk=job.pk).select_for_update(of=("self",), no_key=True).first()
    if found is None:
        raise NotFound(f'there is no job "{job.slug}"')
    return found


def _nobody(target: Target) -> Iterator[Problem]:
    """A name that nobody has is an error here: it is never taken for everybody."""
    for name in unknown_names(target):
        yield Problem("target", f'there is no PC or group "{name}"')


def _deadline(text: str | None, now: datetime, problems: list[Problem]) -> datetime | None:
    try:
        return None if text is None else parse_run_deadline(text, now=now)
    except DeadlineError as error:
        problems.append(Problem("deadline", str(error)))
        return None
