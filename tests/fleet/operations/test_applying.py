"""Applying manifests: plan, sets, pruning, all or nothing."""

from datetime import timedelta

import pytest

from fleet.models import Group, Job, JobRevision, Schedule
from fleet.operations.applying import apply_documents
from fleet.operations.freezing import freeze_document, set_freeze
from fleet.operations.jobs import save_job
from fleet.rules.apply_plan import Action, Given, Plan
from fleet.rules.documents import read_yaml
from fleet.rules.refusals import Invalid
from scheduler.models import AuditEntry
from scheduler.public import Actor
from tests.fleet.make import NOW, make_agent, make_schedule
from tests.fleet.operations.audited import acts
from tests.fleet.rules.manifest.documents import job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("asked")]
LATER = NOW + timedelta(hours=1)

SCHEDULE = """
id: inventory-6h
when: { per_pc: { every: 6h } }
job_id: inventory
target: { groups: [office] }
tz: utc
"""
JOB = """
id: inventory
version: "1"
execute: { shell: sh, script: uname -a, timeout: 30s }
"""
GROUP = "id: office\nmembers: []\n"
SITE = f"{SCHEDULE}---{JOB}---\n{GROUP}---\nfreeze: {{ reason: holidays }}\n"


def given(text: str, source: str = "site.yaml") -> list[Given]:
    return [Given(source, document) for document in read_yaml(text)]


def apply(text: str, alice: Actor, **options: object) -> Plan:
    return apply_documents(given(text), actor=alice, now=LATER, **options)  # type: ignore[arg-type]  # handed on


def told(plan: Plan) -> list[str]:
    return [f"{step.action.value} {step.name}" for step in plan.steps]


def test_documents_are_applied_in_the_order_of_their_needs(alice: Actor) -> None:
    plan = apply(SITE, alice)
    assert told(plan) == [
        "create group office",
        "create job inventory",
        "create schedule inventory-6h",
        "update freeze",
    ]
    assert (plan.is_applied, plan.bad) == (True, [])
    assert [action for action, _, _ in acts()] == ["create", "create", "create", "freeze"]
    assert freeze_document() == {"freeze": {"reason": "holidays"}}


def test_applying_twice_changes_nothing(alice: Actor) -> None:
    apply(SITE, alice)
    before = AuditEntry.objects.count()
    plan = apply(SITE, alice)
    assert plan.count(Action.UNCHANGED) == 4
    assert AuditEntry.objects.count() == before


def test_an_update_names_the_changed_fields(alice: Actor) -> None:
    apply(SITE, alice)
    plan = apply(SCHEDULE.replace("6h }", "12h }") + "jitter: 5m\n", alice)
    [step] = plan.steps
    assert [(one.path, one.before, one.after) for one in step.changes] == [
        ("when.per_pc.every", "6h", "12h"),
        ("jitter", None, "5m"),
    ]


def test_a_dry_run_says_what_would_happen_and_changes_nothing(alice: Actor) -> None:
    plan = apply(SITE, alice, dry_run=True)
    assert plan.count(Action.CREATE) == 3
    assert plan.is_applied is False
    assert not Job.objects.exists()
    assert not Schedule.objects.exists()
    assert freeze_document() == {"freeze": "off"}
    assert acts() == []


BAD = """
id: bad
version: "1"
execute:
  shell: ksh
  timout: 30s
"""


def test_a_bad_document_is_reported_by_file_line_and_path_and_the_others_are_applied(
    alice: Actor,
) -> None:
    plan = apply(f"{JOB}---{BAD}", alice)
    assert told(plan) == ["create job inventory", "bad job bad"]
    problems = [(one.source, one.line, one.path) for one in plan.bad[0].problems]
    assert problems == [
        ("site.yaml", 9, "execute.shell"),
        ("site.yaml", 8, "execute.script"),
        ("site.yaml", 8, "execute.timeout"),
        ("site.yaml", 10, "execute.timout"),
    ]
    assert str(plan.bad[0].problems[3]) == (
        'site.yaml:10: execute.timout: unknown key; did you mean "timeout"?'
    )
    assert Job.objects.get().slug == "inventory"


def test_atomic_applies_nothing_when_one_document_is_bad(alice: Actor) -> None:
    plan = apply(f"{JOB}---{BAD}", alice, atomic=True)
    assert (told(plan), plan.is_applied) == (["create job inventory", "bad job bad"], False)
    assert (Job.objects.exists(), acts()) == (False, [])


def test_atomic_applies_all_when_all_are_good(alice: Actor) -> None:
    assert apply(SITE, alice, atomic=True).is_applied
    assert Schedule.objects.exists()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("id: x\n", "site.yaml:1: is no manifest: it needs exactly one of execute (a job), when"),
        ("- 1\n", "site.yaml:1: is no manifest"),
        ("a: &x 1\n", "site.yaml:1: a: anchors are not read"),
        ("a: [1\n", "site.yaml:2: is no YAML"),
        (SCHEDULE, 'site.yaml:4: job_id: there is no job "inventory"'),
        (f"{JOB}---{JOB}", "site.yaml:6: stands twice, first in site.yaml:2"),
        ("id: office\nmembers: [ghost]\n", 'site.yaml:2: members: there is no PC "ghost"'),
        ("freeze:\n", "site.yaml:1: freeze: must be a mapping"),
        ("freeze: off\n---\nfreeze: {}\n", "site.yaml:3: stands twice"),
    ],
)
def test_each_kind_of_mistake_is_reported(alice: Actor, text: str, problem: str) -> None:
    plan = apply(text, alice)
    assert str(plan.bad[0].problems[0]).startswith(problem)


def test_what_has_no_effect_or_never_runs_is_warned_of(alice: Actor) -> None:
    plan = apply(f"{JOB}check: {{ name: x }}\n---{SCHEDULE}misfire: once\n", alice)
    told_of = [str(warning) for step in plan.steps for warning in step.warnings]
    assert told_of == [
        "site.yaml:5: check: is kept but has no effect here",
        "site.yaml:12: misfire: has no effect with per_pc and per_target: they look every minute",
    ]


def test_a_freeze_that_is_off_thaws(alice: Actor) -> None:
    set_freeze({}, actor=alice, now=NOW)
    assert told(apply("freeze: off\n", alice)) == ["update freeze"]
    assert freeze_document() == {"freeze": "off"}


def test_pruning_deletes_what_the_set_made_and_no_longer_describes(alice: Actor) -> None:
    apply(SITE, alice, set_name="site")
    plan = apply(JOB, alice, set_name="site", prune=True)
    assert told(plan) == [
        "unchanged job inventory",
        "delete schedule inventory-6h",
        "delete group office",
    ]
    assert not Schedule.objects.exists()
    assert not Group.objects.exists()


def test_pruning_touches_nothing_that_another_hand_made(alice: Actor) -> None:
    apply(JOB, alice)
    apply(GROUP, alice, set_name="other")
    plan = apply("id: lab\nmembers: []\n", alice, set_name="site", prune=True)
    assert told(plan) == ["create group lab"]
    assert Job.objects.exists()
    assert Group.objects.filter(slug="office").exists()


def test_pruning_leaves_what_somebody_else_needs_and_says_so(alice: Actor) -> None:
    apply(JOB, alice, set_name="site")
    make_schedule("by-hand", job=Job.objects.get())
    plan = apply(GROUP, alice, set_name="site", prune=True)
    assert [str(problem) for problem in plan.bad[0].problems] == [
        'job inventory: is not deleted: the schedule "by-hand" uses it; delete or change that first'
    ]
    assert Job.objects.exists()


def test_nothing_is_pruned_when_a_document_is_bad(alice: Actor) -> None:
    apply(SITE, alice, set_name="site")
    plan = apply(BAD, alice, set_name="site", prune=True)
    assert plan.not_pruned == "some documents are bad, and what they describe would be deleted"
    assert Schedule.objects.exists()


def test_a_dry_run_of_pruning_deletes_nothing(alice: Actor) -> None:
    apply(SITE, alice, set_name="site")
    plan = apply(JOB, alice, set_name="site", prune=True, dry_run=True)
    assert plan.count(Action.DELETE) == 2
    assert Schedule.objects.exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [({"prune": True}, "set: name the set"), ({"set_name": "a b"}, 'set: "a b" is no id')],
)
def test_a_bad_set_is_refused(alice: Actor, options: dict[str, object], problem: str) -> None:
    with pytest.raises(Invalid, match=problem):
        apply(JOB, alice, **options)
    assert not Job.objects.exists()


def test_a_set_adopts_what_was_made_by_hand(alice: Actor) -> None:
    save_job(job(), actor=alice, now=NOW)
    apply(JOB, alice, set_name="site")
    assert Job.objects.get().set_name == "site"
    assert JobRevision.objects.count() == 1


def test_members_are_applied_by_name(alice: Actor) -> None:
    make_agent("PC-1")
    apply("id: office\nmembers: [pc-1]\n", alice)
    assert [agent.name for agent in Group.objects.get().agents.all()] == ["PC-1"]
