"""What a script writes: the beginning and the end of it in bounded memory, all of it counted.

The bytes stay as they came; which characters they are is the server's question.
"""

import threading
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

LIVE_CHUNK_BYTES = 32 * 1024
_LIVE_BACKLOG_BYTES = 64 * 1024
# The end of a long output says more than its beginning: one quarter and three quarters.
_HEAD_SHARE = 4


class Stream(StrEnum):
    """Where a script writes."""

    STDOUT = "stdout"
    STDERR = "stderr"


@dataclass(frozen=True, slots=True)
class Captured:
    """What is kept of one stream; something is left out when `total` is more than both parts."""

    head: bytes = b""
    tail: bytes = b""
    total: int = 0
    sha256: str = sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a stream while the script runs; `offset` counts from the stream's start."""

    stream: Stream
    offset: int
    data: bytes


class Output:
    """Both streams of one attempt, together at most `most` bytes of them kept.

    The live pieces of a second attempt go on counting where those of the first (`after`) ended:
    the server tells pieces of one command by their offset.
    """

    def __init__(self, most: int, *, after: "Output | None" = None) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept = {stream: _Kept(most) for stream in Stream}
        offsets = after.live_ends() if after else dict.fromkeys(Stream, 0)
        self._live = {stream: _Live(stream, offsets[stream]) for stream in Stream}
        self._live_left = most

    def feed(self, stream: Stream, data: bytes) -> None:
        """Take bytes as they are read."""
        with self._lock:
            self._kept[stream].feed(data)
            self._live[stream].feed(data)

    def captured(self) -> dict[Stream, Captured]:
        """What is kept of each stream; the one that needs less leaves its rest to the other."""
        with self._lock:
            needs = {stream: min(kept.total, self._most) for stream, kept in self._kept.items()}
            half = self._most // 2
            first = min(needs[Stream.STDOUT], max(half, self._most - needs[Stream.STDERR]))
            shares = {Stream.STDOUT: first, Stream.STDERR: self._most - first}
            return {stream: kept.cut(shares[stream]) for stream, kept in self._kept.items()}

    def has_live(self) -> bool:
        """Whether a piece waits to be sent while the script runs."""
        with self._lock:
            return self._live_left > 0 and any(live.waits for live in self._live.values())

    def live_ends(self) -> dict[Stream, int]:
        """The offset behind the last byte of each stream, sent or not."""
        with self._lock:
            return {stream: live.end for stream, live in self._live.items()}

    def live(self) -> list[Chunk]:
        """The next piece of each stream; the same again until `sent` has been called."""
        with self._lock:
            if self._live_left <= 0:
                return []
            chunks = [live.next_chunk() for live in self._live.values()]
            return [chunk for chunk in chunks if chunk is not None]

    def sent(self, chunk: Chunk) -> None:
        """The server has the piece."""
        with self._lock:
            self._live[chunk.stream].done()
            self._live_left -= len(chunk.data)


class _Kept:
    """The first and the last bytes of a stream, so that any share up to `most` can be cut."""

    def __init__(self, most: int) -> None:
        self._head_most = most // _HEAD_SHARE
        self._tail_most = most - self._head_most
        self._head, self._tail = bytearray(), bytearray()
        self._digest = sha256()
        self.total = 0

    def feed(self, data: bytes) -> None:
        self._digest.update(data)
        self.total += len(data)
        room = self._head_most - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        # Cut only now and then: moving the bytes at each read would cost the square of them.
        if len(self._tail) > 2 * self._tail_most:
            del self._tail[: len(self._tail) - self._tail_most]

    def cut(self, share: int) -> Captured:
        digest = self._digest.hexdigest()
        if self.total <= share:
            return Captured(bytes(self._head + self._tail), b"", self.total, digest)
        head = share // _HEAD_SHARE
        # A tail that reaches back into the head does so only while nothing was dropped between.
        behind = self._tail if len(self._tail) >= share - head else self._head + self._tail
        return Captured(
            bytes(self._head[:head]),
            bytes(behind[len(behind) - (share - head) :]),
            self.total,
            digest,
        )


class _Live:
    """Bytes that wait to be shown; where the network is slower than the script, the newest."""

    def __init__(self, stream: Stream, offset: int) -> None:
        self._stream = stream
        self._offset = offset
        self._backlog = bytearray()
        self._in_flight: Chunk | None = None

    @property
    def waits(self) -> bool:
        return self._in_flight is not None or bool(self._backlog)

    @property
    def end(self) -> int:
        return self._offset + len(self._backlog)

    def feed(self, data: bytes) -> None:
        self._backlog += data
        too_many = len(self._backlog) - _LIVE_BACKLOG_BYTES
        if too_many > 0:
            del self._backlog[:too_many]
            self._offset += too_many

    def next_chunk(self) -> Chunk | None:
        # What was sent once is sent again unchanged, so that the server can tell it by its offset.
        if self._in_flight is None and self._backlog:
            data = bytes(self._backlog[:LIVE_CHUNK_BYTES])
            self._in_flight = Chunk(self._stream, self._offset, data)
            del self._backlog[: len(data)]
            self._offset += len(data)
        return self._in_flight

    def done(self) -> None:
        self._in_flight = None
