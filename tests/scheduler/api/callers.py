"""Who calls in tests: a member of staff with some rights, by session."""

import json
from typing import Any

from django.contrib.auth.models import Permission, User
from django.test import Client

API = "/api/v1/"


def make_staff(*rights: str, name: str = "ann") -> User:
    """A member of staff who may do what is named as `app.codename`."""
    user = User.objects.create_user(name, is_staff=True)
    for right in rights:
        app, _, codename = right.partition(".")
        user.user_permissions.add(
            Permission.objects.get(content_type__app_label=app, codename=codename)
        )
    return user


class Caller:
    """Somebody who is signed in, or nobody."""

    def __init__(self, user: User | None = None) -> None:
        self.client = Client()
        if user is not None:
            self.client.force_login(user)

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Send a request below `/api/v1/`; a body goes as JSON."""
        data = b"" if body is None else json.dumps(body).encode()
        kind = "application/json" if data else ""
        return self.client.generic(method.upper(), API + path, data, kind)

    def get(self, path: str) -> Any:
        """GET."""
        return self.call("get", path)

    def post(self, path: str, body: object = None) -> Any:
        """POST."""
        return self.call("post", path, body)

    def patch(self, path: str, body: object) -> Any:
        """PATCH."""
        return self.call("patch", path, body)


def ok(answer: Any, status: int = 200) -> Any:
    """The JSON of an answer that has this status."""
    assert answer.status_code == status, (answer.status_code, answer.content[:1000])
    return answer.json()


def errors(answer: Any) -> dict[str, str]:
    """The messages of a problem by field."""
    return {item["field"]: item["message"] for item in answer.json().get("errors", [])}
