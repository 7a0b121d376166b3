"""Waits at the server to be called, so that a command does not wait for the next exchange.

A hint and nothing more: where the waiting path is missing, broken or slow, the exchanges come at
the pace that the server asked for.
"""

import threading
from collections.abc import Callable
from urllib.parse import quote

from fleet.agent.clock import steady_seconds
from fleet.agent.transport import Transport, UnreachableError

PATH = "/api/agent/v1/wait"
WAIT_S = 50
_SLACK_S = 15
# An answer that comes sooner was no wait: asking again at once would only heat both sides.
_LEAST_S = 1.0
_CALLED, _NOTHING = 200, 204


class Waiter(threading.Thread):
    """Holds one waiting request at a time, with the ticket of the last exchange."""

    def __init__(self, transport: Transport, *, on_call: Callable[[], None]) -> None:
        super().__init__(name="waiter", daemon=True)
        self._transport, self._on_call = transport, on_call
        self._condition = threading.Condition()
        self._ticket = ""
        self._stopping = False

    def offer(self, ticket: str) -> None:
        """Wait with this ticket from now on; an empty one means: do not."""
        with self._condition:
            self._ticket = ticket
            self._condition.notify_all()

    def stop(self) -> None:
        """Begin no further wait."""
        with self._condition:
            self._stopping = True
            self._condition.notify_all()

    def run(self) -> None:
        """Wait until stopped."""
        while ticket := self._next_ticket():
            if self._wait_once(ticket):
                continue
            # Called, or no good: a new ticket comes with the next exchange.
            with self._condition:
                if self._ticket == ticket:
                    self._ticket = ""
        self._transport.close()

    def _next_ticket(self) -> str:
        with self._condition:
            self._condition.wait_for(lambda: self._ticket or self._stopping)
            return "" if self._stopping else self._ticket

    def _wait_once(self, ticket: str) -> bool:
        """Wait for one call; whether the same ticket may be used again."""
        began = steady_seconds()
        target = f"{PATH}?ticket={quote(ticket, safe='')}&timeout={WAIT_S}"
        try:
            reply = self._transport.request("GET", target, timeout_s=WAIT_S + _SLACK_S)
        except UnreachableError:
            return False
        if reply.status == _CALLED:
            self._on_call()
        return reply.status == _NOTHING and steady_seconds() - began >= _LEAST_S
