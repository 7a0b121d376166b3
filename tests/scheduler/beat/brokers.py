"""The brokers of this machine, and what is in a queue of theirs."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.utils.module_loading import import_string

from scheduler.engine.broker import transport_options

REDIS = os.environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/15")
RABBITMQ = os.environ.get("TEST_AMQP_URL", "amqp://guest:guest@127.0.0.1:5672//")
URLS = {"redis": REDIS, "rabbitmq": RABBITMQ}


def connect(url: str) -> Any:
    """A connection, made when it is used."""
    options = transport_options(url)
    return import_string("kombu.Connection")(url, connect_timeout=2, transport_options=options)


def require_broker(name: str) -> str:
    """The URL of a broker that answers; else the test is left out, with CI=true it fails."""
    url = URLS[name]
    with connect(url) as connection:
        found = connection.info()
    address = (found["hostname"] or "127.0.0.1", found["port"])
    try:
        socket.create_connection(address, timeout=2).close()
    except OSError:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no {name} answers at {address[0]}:{address[1]}")
    return url


@contextmanager
def queue(url: str, name: str) -> Iterator["Messages"]:
    """A queue for one test; it is gone after it."""
    with connect(url) as connection:
        simple = connection.SimpleQueue(name)
        simple.clear()
        try:
            yield Messages(simple)
        finally:
            simple.close()
            forget(connection, name)


def forget(connection: Any, name: str) -> None:
    """Delete a queue, with what Redis keeps about it."""
    channel = connection.default_channel
    channel.queue_delete(name)
    if connection.transport.driver_type == "redis":
        keys = [f"_kombu.binding{kind}.{name}" for kind in ("", "_permanent")]
        channel.client.delete(*keys)


class Messages:
    """What comes out of a queue."""

    def __init__(self, simple: Any) -> None:
        self.simple = simple

    def take(self) -> tuple[dict[str, Any], list[Any]]:
        """The headers and the body of the next message."""
        message = self.simple.get(block=True, timeout=10)
        message.ack()
        return message.headers, json.loads(message.body)

    @property
    def is_empty(self) -> bool:
        """Whether there are no more."""
        try:
            self.simple.get_nowait()
        except self.simple.Empty:
            return True
        return False
