"""A WSGI application behind an event loop."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any
from wsgiref.types import StartResponse

import pytest

from kanade import bridge
from kanade.bridge import Bridge
from tests.kanade.asgi_client import Answer, ask, scope

Environ = dict[str, Any]


class Echo:
    """A WSGI application that remembers what it was called with."""

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = chunks or (b"ok",)
        self.environ: Environ = {}
        self.body = b""
        self.closed = False
        self.thread = ""

    def __call__(self, environ: Environ, start: StartResponse) -> Iterator[bytes]:
        self.environ, self.body = environ, environ["wsgi.input"].read()
        self.thread = threading.current_thread().name
        start("201 Created", [("Content-Type", "text/plain"), ("X-Seen", "é")])
        return self._chunks()

    def _chunks(self) -> Iterator[bytes]:
        try:
            yield from self.chunks
        finally:
            self.closed = True


def answer(app: Echo, *args: Any, pieces: tuple[bytes, ...] = (), **options: Any) -> Answer:
    return asyncio.run(ask(Bridge(app, threads=1), scope(*args, **options), *pieces))


def test_a_request_reaches_the_application_in_a_thread_and_its_answer_comes_back() -> None:
    app = Echo(b"one ", b"two")

    got = answer(app, "/a/é", method="PUT", query="q=1", pieces=(b"bo", b"dy"), content_type="x/y")

    assert (got.status, got.body) == (201, b"one two")
    assert got.headers["content-length"] == "7"
    assert got.headers["content-type"] == "text/plain"
    assert app.thread.startswith("web")
    assert app.closed
    assert app.body == b"body"
    assert {name: app.environ[name] for name in ("REQUEST_METHOD", "QUERY_STRING")} == {
        "REQUEST_METHOD": "PUT",
        "QUERY_STRING": "q=1",
    }
    assert app.environ["PATH_INFO"].encode("latin-1").decode() == "/a/é"
    assert app.environ["CONTENT_LENGTH"] == "4"
    assert app.environ["CONTENT_TYPE"] == "x/y"
    assert app.environ["REMOTE_ADDR"] == "10.0.0.7"


def test_a_length_that_the_client_made_up_does_not_count() -> None:
    app = Echo()

    answer(app, method="POST", pieces=(b"four",), content_length="9", transfer_encoding="chunked")

    assert app.environ["CONTENT_LENGTH"] == "4"
    assert "HTTP_TRANSFER_ENCODING" not in app.environ


def test_a_header_with_underscores_cannot_pose_as_the_proxys() -> None:
    app = Echo()
    request = scope()
    request["headers"] = [(b"x_forwarded_proto", b"https"), (b"x-forwarded-for", b"1.2.3.4")]

    asyncio.run(ask(Bridge(app, threads=1), request))

    assert "HTTP_X_FORWARDED_PROTO" not in app.environ
    assert app.environ["HTTP_X_FORWARDED_FOR"] == "1.2.3.4"


def test_repeated_headers_are_joined() -> None:
    app = Echo()
    request = scope()
    request["headers"] = [(b"cookie", b"a=1"), (b"cookie", b"b=2"), (b"x-a", b"1"), (b"x-a", b"2")]

    asyncio.run(ask(Bridge(app, threads=1), request))

    assert app.environ["HTTP_COOKIE"] == "a=1; b=2"
    assert app.environ["HTTP_X_A"] == "1,2"


def test_a_cookie_goes_out_without_the_blank_that_django_puts_before_it() -> None:
    def signs_in(_environ: Environ, start: StartResponse) -> list[bytes]:
        start("200 OK", [("Set-Cookie", " kanade=1; Path=/")])
        return [b""]

    got = asyncio.run(ask(Bridge(signs_in, threads=1), scope()))

    assert got.headers["set-cookie"] == "kanade=1; Path=/"


def test_a_large_answer_is_passed_on_while_it_is_made() -> None:
    app = Echo(*[b"x" * 600_000] * 5)

    got = answer(app)

    assert len(got.body) == 3_000_000
    assert "content-length" not in got.headers
    assert [len(part) for part in got.parts] == [1_200_000, 1_200_000, 600_000]


def test_a_body_over_the_limit_is_refused_before_the_application_sees_it() -> None:
    app = Echo()

    got = answer(app, method="POST", pieces=(b"x" * bridge.MAX_BODY, b"x"))

    assert (got.status, app.environ) == (413, {})


def test_a_body_that_does_not_come_costs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge, "BODY_SECONDS", 0.01)
    app = Echo()
    sent: list[int] = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async def send(message: Any) -> None:
        sent.append(message.get("status", 0))

    asyncio.run(Bridge(app, threads=1)(scope(), receive, send))

    assert sent[0] == 408
    assert app.environ == {}


def test_a_client_that_goes_away_is_forgotten() -> None:
    app = Echo()

    got = asyncio.run(ask(Bridge(app, threads=1), scope(), b"half", complete=False))

    assert (got.status, app.environ) == (0, {})


class Slow:
    """An application that answers once it is told to; `inside` is set while it works."""

    def __init__(self) -> None:
        self.hold, self.inside = threading.Event(), threading.Event()

    def __call__(self, _environ: Environ, start: StartResponse) -> list[bytes]:
        self.inside.set()
        self.hold.wait(20)
        start("200 OK", [])
        return [b""]


def test_the_threads_without_a_request_are_counted() -> None:
    slow = Slow()

    async def scene() -> list[int]:
        app = Bridge(slow, threads=2)
        seen = [app.free_threads()]
        asked = asyncio.create_task(ask(app, scope()))
        await asyncio.to_thread(slow.inside.wait, 20)
        seen.append(app.free_threads())
        slow.hold.set()
        await asked
        return [*seen, app.free_threads()]

    assert asyncio.run(scene()) == [2, 1, 2]


def test_more_requests_than_fit_are_told_to_come_back_later() -> None:
    slow = Slow()

    async def scene() -> tuple[Answer, Answer]:
        app = Bridge(slow, threads=1, longest_queue=1)
        first = asyncio.create_task(ask(app, scope()))
        await asyncio.to_thread(slow.inside.wait, 20)
        second = await ask(app, scope())
        slow.hold.set()
        return await first, second

    first, second = asyncio.run(scene())

    assert (first.status, second.status) == (200, 503)
    assert second.headers["retry-after"] == "5"
