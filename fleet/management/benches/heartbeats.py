"""Both sides of "what does it cost to hear an agent that has nothing to say", in one process.

The other side is what most projects would write: a view of Django REST framework with its token
authentication, a serializer and one UPDATE, under the middleware that Django proposes.
"""

import json
import sys
import time
from collections.abc import Callable
from io import BytesIO
from typing import Any

from django.contrib.auth.models import User
from django.core.handlers.wsgi import WSGIHandler
from django.test import override_settings
from django.urls import path
from django.utils import timezone
from rest_framework import authentication, parsers, permissions, renderers, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.agent_api import limits
from fleet.management.benches.fleet_of import Pc
from fleet.models import AgentPresence, ApiToken

REQUESTS = 200
_DJANGO = (
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
)
KEY = "bench"


class KeyAuthentication(authentication.TokenAuthentication):
    """TokenAuthentication over a table that is there: one query for the token and its owner."""

    def authenticate_credentials(self, key: str) -> Any:
        """Return the owner and the token."""
        token = ApiToken.objects.select_related("user").get(public_id=key)
        return token.user, token


class Beat(serializers.Serializer[Any]):
    """What a heartbeat carries."""

    agent = serializers.IntegerField()
    seq = serializers.IntegerField()
    boot_id = serializers.CharField()


class Heartbeat(APIView):
    """Notes that an agent was heard."""

    authentication_classes = (KeyAuthentication,)
    permission_classes = (permissions.IsAuthenticated,)
    parser_classes = (parsers.JSONParser,)
    renderer_classes = (renderers.JSONRenderer,)

    def post(self, request: Request) -> Response:
        """Answer that it was noted."""
        beat = Beat(data=request.data)
        beat.is_valid(raise_exception=True)
        presence = AgentPresence.objects.filter(pk=beat.validated_data["agent"])
        presence.update(last_seen_at=timezone.now(), seq=beat.validated_data["seq"])
        return Response({"server_time": timezone.now()})


urlpatterns = [path("heartbeat", Heartbeat.as_view())]


def kanade_side(pc: Pc) -> Callable[[], float]:
    """Return what measures an exchange without news: milliseconds of CPU."""
    handler = WSGIHandler()
    quiet: dict[str, object] = {"holding": [], "started": [], "results": [], "output": []}

    def measure() -> float:
        # Hearing one agent so often in a minute is the bench's doing.
        limits.AGENTS = limits.Allowance(10**9)
        said = quiet | {"sent_at": timezone.now().isoformat(), "mono": 1.5}
        bodies = [json.dumps(pc.message(**said)).encode() for _ in range(REQUESTS)]
        return _cpu(handler, "/api/agent/v1/exchange", bodies, f"Bearer {pc.token.text}")

    return measure


def peer_side(pc: Pc) -> Callable[[], float]:
    """Return what measures a heartbeat of the framework: milliseconds of CPU."""
    user = User.objects.create(username="bench")
    now = timezone.now()
    ApiToken.objects.create(
        public_id=KEY, secret_hash="", user=user, expires_at=now, created_at=now
    )
    body = json.dumps({"agent": pc.pk, "seq": 1, "boot_id": "bench"}).encode()

    def measure() -> float:
        with override_settings(MIDDLEWARE=_DJANGO, ROOT_URLCONF=__name__):
            return _cpu(WSGIHandler(), "/heartbeat", [body] * REQUESTS, f"Token {KEY}")

    return measure


def _cpu(handler: WSGIHandler, path: str, bodies: list[bytes], authorization: str) -> float:
    _call(handler, path, bodies[0], authorization)
    began = time.process_time()
    for body in bodies:
        _call(handler, path, body, authorization)
    return (time.process_time() - began) / len(bodies) * 1000


def _call(handler: WSGIHandler, path: str, body: bytes, authorization: str) -> None:
    statuses: list[str] = []
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": path,
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "127.0.0.1",
        "HTTP_AUTHORIZATION": authorization,
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.input": BytesIO(body),
        "wsgi.errors": sys.stderr,
        # Behind TLS, so that nothing is redirected.
        "wsgi.url_scheme": "https",
    }

    def start(status: str, *_headers: object) -> Callable[[bytes], object]:
        statuses.append(status)
        return lambda _data: None

    answer = handler(environ, start)
    for _ in answer:
        pass
    answer.close()
    assert statuses[0].startswith("200"), statuses[0]
