"""What people do to jobs: run one now, approve, revoke, stop everything of it."""

from typing import Any

from django import forms
from django.urls import reverse

from fleet.admin.document_fields import words
from fleet.admin.execution_verbs import OverrideForm, overrides
from fleet.admin.job_page import awaits_approval
from fleet.admin.manifest_form import YamlField
from fleet.admin.verbs import Call, Done, Verb
from fleet.models import Group, Job
from fleet.operations.approving import approve_revision
from fleet.operations.jobs import revoke_job, unrevoke_job
from fleet.operations.running import run_job
from fleet.operations.stopping import kill_job
from fleet.rules.problems import Problem
from fleet.rules.refusals import Conflict, Invalid

MOST_GROUPS_OFFERED = 500
VIEW = "fleet.view_job"


class RunForm(OverrideForm):
    """On which PCs a job runs now, and by when they must have started."""

    pcs = forms.CharField(
        label="PCs",
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Names or uuids, separated by commas or on lines of their own.",
    )
    groups = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)
    all_pcs = forms.BooleanField(label="Every PC of the fleet", required=False)
    deadline = forms.CharField(
        required=False,
        help_text="Such as 4h: PCs that have not started by then do not. Blank: seven days.",
    )
    params = YamlField(label="Parameters", rows=3, help_text="Such as NAME: value.")
    field_order = ("pcs", "groups", "all_pcs", "deadline", "params", "reason", "override_freeze")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        slugs = Group.objects.values_list("slug", flat=True)[:MOST_GROUPS_OFFERED]
        choices = [(slug, slug) for slug in slugs]
        self.fields["groups"].choices = choices  # type: ignore[attr-defined]  # a choice field
        manifest = self.target.current.manifest if self.target and self.target.current else {}
        if not manifest.get("execute", {}).get("params"):
            del self.fields["params"]


def _run(call: Call[Job]) -> Done:
    try:
        execution = run_job(
            call.obj,
            target=target_of(call.data),
            actor=call.actor,
            now=call.now,
            deadline=call.data["deadline"] or None,
            reason=call.data["reason"],
            override_freeze=overrides(call),
            params=call.data.get("params") or {},
        )
    except Invalid as refusal:
        raise Invalid(_at_its_field(problem) for problem in refusal.problems) from refusal
    return Done(
        f"{call.obj.slug} is on its way.",
        reverse("admin:fleet_execution_change", args=[execution.pk]),
    )


def target_of(data: Any) -> dict[str, object]:
    """The target that the form says; blank parts are left out."""
    target: dict[str, object] = {"groups": data["groups"], "pcs": words(data["pcs"])}
    if data["all_pcs"]:
        target["all"] = True
    return {key: value for key, value in target.items() if value}


def _at_its_field(problem: Problem) -> Problem:
    """A problem of the target at the field that says it; the whole target's at the first."""
    path = problem.path.removeprefix("target").removeprefix(".")
    head = path.split("[")[0].split(".")[0]
    known = {"": "pcs", "all": "all_pcs"}
    if problem.path.startswith("target") or head in {"pcs", "groups", "all"}:
        return Problem(known.get(head, head), problem.message)
    return problem


def _approve(call: Call[Job]) -> Done:
    if call.obj.latest is None:
        raise Conflict("it has no revision")
    approve_revision(call.obj.latest, actor=call.actor, now=call.now, reason=call.data["reason"])
    return Done(f"Version {call.obj.latest.version} of {call.obj.slug} runs from now on.")


def _revoke(call: Call[Job]) -> Done:
    revoke_job(call.obj, actor=call.actor, now=call.now, reason=call.data["reason"])
    return Done(f"{call.obj.slug} starts nowhere any more.")


def _unrevoke(call: Call[Job]) -> Done:
    unrevoke_job(call.obj, actor=call.actor, now=call.now, reason=call.data["reason"])
    return Done(f"{call.obj.slug} may start again.")


def _kill(call: Call[Job]) -> Done:
    count = kill_job(call.obj, actor=call.actor, now=call.now, reason=call.data["reason"])
    return Done(f"{count} open executions of {call.obj.slug} are stopped.")


VERBS: tuple[Verb[Job], ...] = (
    Verb(
        name="run",
        title="Run now",
        text="The job's current version is sent to these PCs, whether they are online or not; "
        "those that are away get it when they are back, until the deadline.",
        permissions=(VIEW, "fleet.run_job"),
        act=_run,
        form=RunForm,
        look="primary",
        fits=lambda job: job.current_id is not None and job.revoked_at is None,
        for_many=False,
    ),
    Verb(
        name="approve",
        title="Approve the newest version",
        text="It was written by somebody else, and runs from now on. What changes is shown on "
        "the job's page.",
        permissions=(VIEW, "fleet.approve_job"),
        act=_approve,
        look="primary",
        fits=awaits_approval,
        for_many=False,
    ),
    Verb(
        name="revoke",
        title="Revoke",
        text="The job starts nowhere any more. Commands that wait are refused by the PCs; "
        "what runs goes on.",
        permissions=("fleet.change_job", "fleet.revoke_job"),
        act=_revoke,
        look="danger",
        fits=lambda job: job.revoked_at is None,
    ),
    Verb(
        name="unrevoke",
        title="Take the revocation back",
        text="The job may start again, and its schedules look at once.",
        permissions=("fleet.change_job", "fleet.revoke_job"),
        act=_unrevoke,
        fits=lambda job: job.revoked_at is not None,
    ),
    Verb(
        name="kill",
        title="Stop all of it",
        text="Every open execution of the job is stopped: what waits is cancelled, and PCs that "
        "run it end its whole process tree.",
        permissions=(VIEW, "fleet.kill_execution"),
        act=_kill,
        look="danger",
    ),
)
