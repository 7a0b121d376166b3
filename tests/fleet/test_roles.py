"""The four groups exist after the migrations and hold what the table of roles says."""

import pytest
from django.contrib.auth.models import Group, Permission

from fleet.rules.roles import APPROVER, FLEET_ADMIN, OPERATOR, ROLES, VIEWER


@pytest.mark.django_db
@pytest.mark.parametrize("name", sorted(ROLES))
def test_a_group_holds_its_role(name: str) -> None:
    rights = Permission.objects.filter(group__name=name).select_related("content_type")

    held = {f"{right.content_type.app_label}.{right.codename}" for right in rights}

    assert held == ROLES[name]


@pytest.mark.django_db
def test_there_are_no_other_groups() -> None:
    assert set(Group.objects.values_list("name", flat=True)) == set(ROLES)


def test_a_viewer_only_views() -> None:
    assert {right for right in VIEWER if ".view_" not in right} == set()


def test_who_approves_neither_writes_nor_runs() -> None:
    added = APPROVER - VIEWER

    assert added == {"fleet.approve_job"}


def test_an_operator_neither_enrols_nor_approves_nor_overrides_a_freeze() -> None:
    forbidden = {"fleet.manage_enrolment", "fleet.approve_job", "fleet.override_freeze"}

    assert OPERATOR & forbidden == set()
    assert forbidden <= FLEET_ADMIN


def test_no_role_touches_accounts() -> None:
    assert {
        right for role in ROLES.values() for right in role if right.startswith("auth.")
    } == set()
