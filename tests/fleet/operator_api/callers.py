"""Who calls in tests: people by session, programs by token, each with a role."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.contrib.auth.models import Group, User
from django.http import HttpResponse
from django.test import Client

from fleet.models import ApiToken
from fleet.operations import tokens

API = "/api/v1/"
# The site reads the real clock.
FAR = datetime(2999, 1, 1, tzinfo=UTC)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def make_user(role: str = "", **fields: Any) -> User:
    """A member of staff with a role; without one a superuser."""
    name = role or "root"
    values: dict[str, Any] = {"username": name, "is_staff": True, "is_superuser": not role} | fields
    user = User.objects.create_user(**values)
    if role:
        user.groups.add(Group.objects.get(name=role))
    return user


def make_token(user: User, **fields: Any) -> tuple[ApiToken, str]:
    """A token of the user: its row and its text."""
    token = tokens.new_token(tokens.Purpose.API)
    values = {
        "public_id": token.public_id,
        "secret_hash": tokens.kept_hash(token),
        "user": user,
        "expires_at": FAR,
        "created_at": LONG_AGO,
    } | fields
    return ApiToken.objects.create(**values), token.text


class Caller:
    """A program with a token, or somebody without one."""

    def __init__(self, user: User | None = None, *, token: str = "") -> None:
        self.client = Client()
        self.text = token or (make_token(user)[1] if user else "")

    def call(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        """Send a request below `/api/v1/`; a body goes as JSON."""
        if self.text:
            headers = {"authorization": f"Bearer {self.text}"} | headers
        data = b"" if body is None else json.dumps(body).encode()
        return self.client.generic(
            method.upper(),
            path if path.startswith("/") else API + path,
            data,
            "application/json" if data else "",
            headers=headers,
        )

    def get(self, path: str, **headers: str) -> Any:
        """GET."""
        return self.call("get", path, **headers)

    def post(self, path: str, body: object = None, **headers: str) -> Any:
        """POST."""
        return self.call("post", path, body, **headers)

    def put(self, path: str, body: object = None) -> Any:
        """PUT."""
        return self.call("put", path, body)

    def patch(self, path: str, body: object = None) -> Any:
        """PATCH."""
        return self.call("patch", path, body)

    def delete(self, path: str) -> Any:
        """DELETE."""
        return self.call("delete", path)


def ok(answer: HttpResponse, status: int = 200) -> Any:
    """The JSON of an answer that has this status."""
    assert answer.status_code == status, (answer.status_code, answer.content[:1000])
    return answer.json()  # type: ignore[attr-defined]  # the test client's own


def errors(answer: Any) -> Mapping[str, str]:
    """The messages of a problem by field."""
    return {item["field"]: item["message"] for item in answer.json().get("errors", [])}
