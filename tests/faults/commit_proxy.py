"""A proxy before PostgreSQL that breaks a connection at one COMMIT, so that its answer is unknown.

It breaks *before* the server hears of it, or *after* the server has done it.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Self

from django.db import connections

CHUNK = 65536
COMMIT = b"COMMIT"


@dataclass(eq=False)
class _Link:
    """One client and the server's side of it."""

    client: socket.socket
    server: socket.socket
    # The next answer of the server does not reach the client, and is the last.
    is_mute: bool = False

    def cut(self) -> None:
        for end in (self.client, self.server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@dataclass
class CommitProxy:
    """Listens on a port of its own; `hits` is the witness that a connection was broken."""

    address: tuple[str, int]
    hits: int = 0
    _countdown: int = 0
    _after: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def arm(self, nth: int, *, after: bool) -> None:
        """Break the connection at the n-th COMMIT from now on."""
        with self._lock:
            self._countdown, self._after, self.hits = nth, after, 0

    @contextmanager
    def between(self) -> Iterator[Self]:
        """Let new connections of this process go through it."""
        settings = connections["default"].settings_dict
        before = {name: settings[name] for name in ("HOST", "PORT", "OPTIONS")}
        with socket.create_server(("127.0.0.1", 0)) as door:
            threading.Thread(target=self._accept, args=(door,), daemon=True).start()
            settings |= {
                "HOST": "127.0.0.1",
                "PORT": door.getsockname()[1],
                # It has to see what is said.
                "OPTIONS": before["OPTIONS"] | {"sslmode": "disable", "gssencmode": "disable"},
            }
            connections.close_all()
            try:
                yield self
            finally:
                connections.close_all()
                settings |= before

    def _accept(self, door: socket.socket) -> None:
        with suppress(OSError):  # the door is closed at the end
            while True:
                client, _ = door.accept()
                link = _Link(client, socket.create_connection(self.address))
                for pump in (self._ask, self._answer):
                    threading.Thread(target=pump, args=(link,), daemon=True).start()

    def _ask(self, link: _Link) -> None:
        with suppress(OSError):  # cut meanwhile
            while data := link.client.recv(CHUNK):
                if COMMIT in data and self._is_it():
                    if not self._after:
                        break
                    link.is_mute = True
                link.server.sendall(data)
        if not link.is_mute:
            link.cut()

    def _answer(self, link: _Link) -> None:
        with suppress(OSError):
            while data := link.server.recv(CHUNK):
                if link.is_mute:
                    break
                link.client.sendall(data)
        link.cut()

    def _is_it(self) -> bool:
        with self._lock:
            self._countdown -= 1
            if self._countdown:
                return False
            self.hits += 1
            return True
