"""Asks the agents' API as an agent does."""

import json
from dataclasses import dataclass, field
from typing import Any

from django.test import Client

from fleet.models import Agent
from fleet.operations.tokens import Purpose, kept_hash, new_token
from tests.fleet.make import make_agent

EXCHANGE, ENROL = "/api/agent/v1/exchange", "/api/agent/v1/enrol"
FINGERPRINT = "f" * 64


def give_credential(agent: Agent) -> str:
    """Give an agent a credential; return its text."""
    token = new_token(Purpose.AGENT, agent.uuid_text)
    Agent.objects.filter(pk=agent.pk).update(credential_hash=kept_hash(token))
    return token.text


def post(path: str, body: object, *, credential: str | None = None, **headers: str) -> Any:
    """Send a body: bytes as they are, anything else as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    if credential is not None:
        headers["Authorization"] = f"Bearer {credential}"
    return Client().post(path, data, content_type="application/json", headers=headers)


@dataclass
class Pc:
    """A PC with a credential that counts its exchanges."""

    agent: Agent = field(default_factory=make_agent)
    credential: str = ""
    epoch: int | None = 1
    seq: int = 0

    def __post_init__(self) -> None:
        self.credential = self.credential or give_credential(self.agent)

    def says(self, **parts: object) -> dict[str, object]:
        """The next message."""
        self.seq += 1
        return {
            "protocol": 1,
            "epoch": self.epoch,
            "seq": self.seq,
            "boot_id": "boot-1",
            "fingerprint": FINGERPRINT,
        } | parts

    def sends(self, **parts: object) -> Any:
        """Send the next message; return the response."""
        return post(EXCHANGE, self.says(**parts), credential=self.credential)

    def exchanges(self, **parts: object) -> dict[str, Any]:
        """Send the next message; return what it is told."""
        response = self.sends(**parts)
        assert response.status_code == 200, response.content
        told: dict[str, Any] = response.json()
        self.epoch = told["epoch"]
        return told
