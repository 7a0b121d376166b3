"""What the tests of the scheduler's pages share."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from scheduler.registry import REGISTRY
from tests.scheduler.make import make_kind

Visit = Callable[[str], Client]


@pytest.fixture(autouse=True)
def demo() -> None:
    """There is one kind of task."""
    REGISTRY.add(make_kind("demo"))


@pytest.fixture
def visit(db: None) -> Visit:
    """A browser of somebody with a role (`root` is a superuser, `nobody` staff without one)."""

    def sign_in(role: str) -> Client:
        fields = {"is_staff": True, "is_superuser": role == "root"}
        user, made = User.objects.get_or_create(username=role, defaults=fields)
        if made and role not in {"root", "nobody"}:
            user.groups.add(Group.objects.get(name=role))
        client = Client()
        client.force_login(user)
        return client

    return sign_in


@pytest.fixture
def root(visit: Visit) -> Client:
    """A superuser's browser."""
    return visit("root")
