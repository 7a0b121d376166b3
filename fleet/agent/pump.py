"""Carries a script's output from its pipes into bounded memory, and never waits for strangers.

A process that the script left behind may hold the pipes open for days. Once the script itself has
ended, what is on its way is read, and then the agent turns away.
"""

import os
import selectors
import subprocess
import sys
import threading
from typing import IO

from fleet.agent.clock import steady_seconds
from fleet.agent.output import Output, Stream

_READ_BYTES = 64 * 1024
_QUIET_S = 0.25
_MOST_S = 1.0


class Pump:
    """Reads both pipes of a process in the background."""

    def __init__(self, process: subprocess.Popen[bytes], output: Output) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._pipes: dict[Stream, IO[bytes]] = {
            Stream.STDOUT: process.stdout,
            Stream.STDERR: process.stderr,
        }
        self._output = output
        self._wake_read, self._wake_write = os.pipe()
        self._threads = self._make_threads()
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """The script has ended: read what is on its way, then close the pipes."""
        os.close(self._wake_write)
        for thread in self._threads:
            thread.join(_MOST_S + 1)
        os.close(self._wake_read)
        # Windows offers no way out of a read: there the thread keeps the pipe until its end.
        if not any(thread.is_alive() for thread in self._threads):
            for pipe in self._pipes.values():
                pipe.close()

    def _make_threads(self) -> list[threading.Thread]:
        if sys.platform == "win32":
            return [
                threading.Thread(target=self._read_one, args=(stream,), name="pump", daemon=True)
                for stream in self._pipes
            ]
        return [threading.Thread(target=self._read_both, name="pump", daemon=True)]

    def _read_both(self) -> None:
        last: float | None = None
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake_read, selectors.EVENT_READ, None)
            for stream, pipe in self._pipes.items():
                selector.register(pipe, selectors.EVENT_READ, stream)
            while any(key.data is not None for key in selector.get_map().values()):
                if last is not None and steady_seconds() > last:
                    return
                events = selector.select(None if last is None else _QUIET_S)
                if not events:
                    return
                for key, _ in events:
                    if key.data is None:
                        last = steady_seconds() + _MOST_S
                        selector.unregister(self._wake_read)
                    elif not self._read(key.data):
                        selector.unregister(self._pipes[key.data])

    def _read_one(self, stream: Stream) -> None:
        while self._read(stream):
            pass

    def _read(self, stream: Stream) -> bool:
        """Read what is there; False at the end of the stream."""
        data = os.read(self._pipes[stream].fileno(), _READ_BYTES)
        self._output.feed(stream, data)
        return bool(data)
