"""The site for an ASGI server: agents wait on the event loop, all else is Django in threads."""

import asyncio
import os
from collections.abc import Callable
from datetime import UTC, datetime

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connections

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kanade.settings")
django_site = get_wsgi_application()

# Django's models can be imported only now.
from fleet.agent_api import listening, waiting  # noqa: E402
from fleet.agent_api.waiting_room import WaitingRoom  # noqa: E402
from fleet.operations.tokens import ticket_key  # noqa: E402
from kanade.bridge import Bridge, Receive, Scope, Send  # noqa: E402


class Site:
    """Sends each request to the waiting room or to Django, and looks after both."""

    def __init__(self, django: Bridge, room: WaitingRoom, ears: listening.Ears, key: bytes) -> None:
        self._django = django
        self._room = room
        self._ears = ears
        self._wait = waiting.WaitingApp(room, key=key, clock=_now)
        self._chores: list[asyncio.Task[None]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or live through the server's start and stop."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            self._begin()
            app = self._wait if scope["path"] == waiting.PATH else self._django
            await app(scope, receive, send)
        else:
            # No part of the site speaks WebSocket.
            await send({"type": "websocket.close"})

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._begin()
                await send({"type": "lifespan.startup.complete"})
            else:
                self._end()
                await send({"type": "lifespan.shutdown.complete"})
                return

    def _begin(self) -> None:
        # With the first request where the server knows no lifespan.
        if self._chores:
            return
        self._chores = [
            asyncio.create_task(self._room.pass_on_calls()),
            asyncio.create_task(listening.keep_listening(self._ears, self._called)),
        ]

    def _end(self) -> None:
        self._room.send_home()
        for chore in self._chores:
            chore.cancel()
        self._django.close()

    def _called(self, agent_ids: list[int] | None) -> None:
        if agent_ids is None:
            self._room.call_everybody()
        else:
            self._room.call(agent_ids)


def _now() -> datetime:
    return datetime.now(UTC)


def _ears() -> listening.Ears:
    """Return the way to hear calls that fits the database."""
    connection = connections["default"]
    if connection.vendor == "postgresql":
        return listening.PostgresEars(connection.get_connection_params())
    return listening.SQLiteEars(str(connection.settings_dict["NAME"]))


_bridge = Bridge(django_site, threads=settings.KANADE_WEB_THREADS)
application: Callable[..., object] = Site(
    _bridge,
    WaitingRoom(
        calls_per_second=settings.KANADE_CALLS_PER_SECOND, clock=_now, free=_bridge.free_threads
    ),
    _ears(),
    ticket_key(),
)
