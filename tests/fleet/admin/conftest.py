"""What the tests of the pages share."""

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.test import Client

Visit = Callable[[str], Client]


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    """Counts of past hours are kept in the process; each test counts anew."""
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def visit(db: None) -> Visit:
    """A browser of somebody with a role (`root` is a superuser, `nobody` staff without one)."""

    def sign_in(role: str) -> Client:
        user = User.objects.filter(username=role).first()
        if user is None:
            user = User.objects.create_user(
                role, password="unused", is_staff=True, is_superuser=role == "root"
            )
            if role not in {"root", "nobody"}:
                user.groups.add(Group.objects.get(name=role))
        client = Client()
        client.force_login(user)
        return client

    return sign_in


@pytest.fixture
def root(visit: Visit) -> Client:
    """A superuser's browser."""
    return visit("root")
