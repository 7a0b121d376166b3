"""T-09, T-10, T-11: every act, for each role, on the object's page and on the list."""

from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from fleet.admin.verbs import Verb, VerbAdmin
from fleet.models import Agent, ApiToken, Job, Schedule
from fleet.rules.roles import ROLES
from tests.fleet.admin.conftest import Visit
from tests.fleet.admin.everything import Rows, address_of, make_everything

pytestmark = pytest.mark.django_db

ADMINS: dict[str, VerbAdmin[Any]] = {
    str(model_admin.opts.model_name): model_admin
    for model_admin in admin.site._registry.values()
    if isinstance(model_admin, VerbAdmin) and model_admin.verbs
}
ACTS: list[tuple[str, Verb[Any]]] = [
    (model, verb) for model, model_admin in ADMINS.items() for verb in model_admin.verbs
]
IDS = [f"{model}-{verb.name}" for model, verb in ACTS]
O, A, F = "operator", "approver", "fleet-admin"  # noqa: E741  # the columns of the table
ALLOWED = {
    "agent-groups": {O, F},
    "agent-accept": {F},
    "agent-take-over": {F},
    "agent-take-over-record": {F},
    "agent-dismiss": {F},
    "agent-rotate": {F},
    "agent-revoke": {F},
    "apitoken-revoke": {F},
    "enrolmenttoken-revoke": {F},
    "execution-approve": {A, F},
    "execution-again": {O, F},
    "execution-kill": {O, F},
    "group-delete": {O, F},
    "job-run": {O, F},
    "job-approve": {A, F},
    "job-revoke": {O, F},
    "job-unrevoke": {O, F},
    "job-kill": {O, F},
    "job-delete": {O, F},
    "schedule-fire": {O, F},
    "schedule-enable": {O, F},
    "schedule-disable": {O, F},
    "schedule-disable-revoke": {O, F},
    "schedule-disable-kill": {O, F},
    "schedule-delete": {O, F},
}


def test_the_table_names_every_act() -> None:
    assert sorted(IDS) == sorted(ALLOWED)


def made_for(role: str) -> Rows:
    return make_everything("plain words", User.objects.get(username=role))


@pytest.mark.parametrize("role", [*sorted(ROLES), "nobody"])
def test_a_role_opens_the_pages_of_its_acts_alone(role: str, visit: Visit) -> None:
    client = visit(role)
    rows = made_for(role)

    opened = {
        f"{model}-{verb.name}"
        for model, verb in ACTS
        if client.get(page_of(model, verb, rows)).status_code == 200
    }

    assert opened == {act for act, roles in ALLOWED.items() if role in roles}


def page_of(model: str, verb: Verb[Any], rows: Rows) -> str:
    return address_of(f"fleet_{model}_{verb.name}", "<object_id>", rows)


@pytest.mark.parametrize("role", ["viewer", "approver", "nobody"])
def test_an_act_that_is_not_a_roles_own_is_refused_and_changes_nothing(
    role: str, visit: Visit
) -> None:
    client = visit(role)
    rows = made_for(role)
    forbidden = [
        (model, verb) for model, verb in ACTS if role not in ALLOWED[f"{model}-{verb.name}"]
    ]

    answers = [client.post(page_of(model, verb, rows)).status_code for model, verb in forbidden]

    assert set(answers) == {403}
    assert Job.objects.filter(revoked_at=None).count() == 1
    assert Schedule.objects.filter(enabled=True).count() == 2
    assert set(Agent.objects.values_list("state", flat=True)) == {"active"}


@pytest.mark.parametrize("role", [*sorted(ROLES), "nobody"])
def test_a_list_offers_a_role_its_acts_alone(role: str, visit: Visit) -> None:
    client = visit(role)
    made_for(role)
    for model, model_admin in ADMINS.items():
        answer = client.get(reverse(f"admin:fleet_{model}_changelist"))
        wanted = {
            verb.name
            for verb in model_admin.verbs
            if verb.for_many and role in ALLOWED[f"{model}-{verb.name}"]
        }
        if answer.status_code == 403:
            assert wanted == set(), model
            continue
        form = answer.context["action_form"]
        offered = {name for name, _ in form.fields["action"].choices if name} if form else set()
        assert offered == wanted, model


def test_an_act_posted_to_a_list_by_hand_is_refused(visit: Visit) -> None:
    client = visit("viewer")
    rows = made_for("viewer")
    chosen = {"action": "kill", "_selected_action": [rows.job.pk], "confirmed": "yes"}

    client.post(reverse("admin:fleet_job_changelist"), chosen)

    rows.running.refresh_from_db()
    assert rows.running.kill_requested_at is None


@pytest.mark.parametrize("role", ["viewer", "approver", "nobody"])
@pytest.mark.parametrize("model", ["job", "schedule", "group"])
def test_who_may_not_write_cannot_save_a_form(role: str, model: str, visit: Visit) -> None:
    client = visit(role)
    rows = made_for(role)
    key = getattr(rows, model).pk

    for page, args in (("add", []), ("change", [key]), ("add_yaml", []), ("yaml", [key])):
        answer = client.post(reverse(f"admin:fleet_{model}_{page}", args=args), {"text": "id: x"})
        assert answer.status_code == 403, page


def test_only_who_may_override_is_offered_to_and_believed(visit: Visit) -> None:
    rows = made_for_root(visit)
    address = reverse("admin:fleet_job_run", args=[rows.job.pk])
    typed = {"pcs": rows.agent.uuid_text, "reason": "urgent", "override_freeze": "on"}

    assert "override_freeze" not in visit("operator").get(address).content.decode()
    assert "override_freeze" in visit("fleet-admin").get(address).content.decode()
    refused = visit("operator").post(address, typed)
    accepted = visit("fleet-admin").post(address, typed)

    assert "the fleet is frozen" in refused.content.decode()
    assert accepted.status_code == 302


def made_for_root(visit: Visit) -> Rows:
    visit("root")
    return made_for("root")


def test_a_token_of_somebody_else_is_not_there(visit: Visit) -> None:
    visit("root")
    rows = made_for("root")
    client = visit("fleet-admin")

    answer = client.post(reverse("admin:fleet_apitoken_revoke", args=[rows.token.pk]))

    assert answer.status_code == 404
    assert ApiToken.objects.get().revoked_at is None
    listed = client.get(reverse("admin:fleet_apitoken_changelist")).content.decode()
    assert rows.token.public_id not in listed


ESCALATIONS = {
    "is_superuser": "on",
    "is_staff": "on",
    "is_active": "on",
    "username": "editor",
    "date_joined_0": "2026-01-01",
    "date_joined_1": "00:00:00",
}


def editor(visit: Visit) -> tuple[Client, User]:
    """Somebody who may edit accounts and no more."""
    client = visit("nobody")
    user = User.objects.get(username="nobody")
    names = ["view_user", "add_user", "change_user", "delete_user"]
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    return client, user


def test_nobody_raises_their_own_rights(visit: Visit) -> None:
    client, user = editor(visit)
    group = user.groups.model.objects.get(name="fleet-admin")
    wanted = ESCALATIONS | {"groups": str(group.pk), "user_permissions": "1"}

    client.post(reverse("admin:auth_user_change", args=[user.pk]), wanted)

    user.refresh_from_db()
    assert user.username == "editor"
    assert (user.is_superuser, user.groups.count()) == (False, 0)
    assert user.user_permissions.count() == 4


def test_a_superuser_is_touched_by_superusers_alone(visit: Visit) -> None:
    client, _ = editor(visit)
    visit("root")
    boss = User.objects.get(username="root")

    for page in ("auth_user_change", "auth_user_delete"):
        address = reverse(f"admin:{page}", args=[boss.pk])
        assert client.post(address, ESCALATIONS | {"post": "yes"}).status_code == 403
    password = reverse("admin:auth_user_password_change", args=[boss.pk])
    assert client.post(password, {"password1": "x", "password2": "x"}).status_code == 403


SIDE_DOORS = [
    "?credential_hash__startswith=a",
    "?secret_hash__startswith=a",
    "?next_credential_hash=",
    "?enrolment_nonce_hash__contains=a",
    "?user__password__startswith=a",
    "?job__revisions__manifest__contains=x",
    "?groups__slug=x",
    "?_to_field=credential_hash",
]


@pytest.mark.parametrize("query", SIDE_DOORS)
@pytest.mark.parametrize("model", ["agent", "apitoken", "enrolmenttoken", "schedule", "result"])
def test_a_list_is_narrowed_by_named_columns_alone(model: str, query: str, root: Client) -> None:
    answer = root.get(reverse(f"admin:fleet_{model}_changelist") + query)

    assert answer.status_code == 400 or answer.headers.get("Location", "").endswith("?e=1")


def test_no_searched_column_holds_a_secret() -> None:
    searched = {field for model_admin in ADMINS.values() for field in model_admin.search_fields}

    assert not [field for field in searched if "hash" in field or "secret" in field]


def test_the_actor_is_the_signed_in_person(visit: Visit) -> None:
    client = visit("operator")
    rows = made_for("operator")
    user = User.objects.get(username="operator")

    client.post(reverse("admin:fleet_job_revoke", args=[rows.job.pk]), {"reason": "wrong script"})

    client.logout()
    rows.job.refresh_from_db()
    assert rows.job.revoked_at is not None
    entry = last_entry()
    assert (entry.actor_name, entry.user_id, entry.reason) == ("operator", user.pk, "wrong script")
    assert (entry.action, entry.object_kind, entry.object_id) == ("revoke", "job", "patch")
    assert entry.actor_kind == "user"


def last_entry() -> Any:
    return apps.get_model("scheduler", "AuditEntry").objects.latest("pk")
