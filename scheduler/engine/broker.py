"""Messages to a broker of Celery's. They may be lost or come twice: they decide nothing."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from django.utils.module_loading import import_string

# Seconds that a broker may take to answer.
PATIENCE = 5
# A connection that broke is made anew, once; the next try after that is the caller's.
ONCE_MORE: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "ignore_result": True,
        "retry": True,
        "retry_policy": {"max_retries": 1, "interval_start": 0, "interval_max": 0},
    }
)


class NoBrokerError(Exception):
    """No broker is configured to send to."""


@cache
def sender(url: str) -> Any:
    """Return Celery's application for messages to the broker at `url`; raise NoBrokerError.

    Celery is imported by the first call.
    """
    if not url:
        raise NoBrokerError("CELERY_BROKER_URL is not set; write redis://HOST or amqp://HOST")
    app = import_string("celery.Celery")("kanade.sender", broker=url, set_as_current=False)
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        broker_connection_timeout=PATIENCE,
        broker_transport_options=transport_options(url),
    )
    return app


def transport_options(url: str) -> dict[str, object]:
    """Return what makes a broker answer soon, and say that it has the message."""
    if url.startswith(("amqp", "pyamqp")):
        return {"confirm_publish": True, "read_timeout": PATIENCE, "write_timeout": PATIENCE}
    if url.startswith("redis"):
        return {"socket_connect_timeout": PATIENCE, "socket_timeout": PATIENCE}
    return {}
