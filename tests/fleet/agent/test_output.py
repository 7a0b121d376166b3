"""Bounded output: head and tail, all bytes counted and hashed, live pieces with their offsets."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.agent.output import LIVE_CHUNK_BYTES, Captured, Chunk, Output, Stream

OUT, ERR = Stream.STDOUT, Stream.STDERR


def fed(most: int, stdout: bytes = b"", stderr: bytes = b"") -> Output:
    output = Output(most)
    output.feed(OUT, stdout)
    output.feed(ERR, stderr)
    return output


def test_nothing_written_is_nothing_kept() -> None:
    assert Output(100).captured() == {OUT: Captured(), ERR: Captured()}


def test_what_fits_is_kept_whole() -> None:
    kept = fed(10, b"abcdef", b"wxyz").captured()
    assert kept[OUT] == Captured(b"abcdef", b"", 6, sha256(b"abcdef").hexdigest())
    assert kept[ERR] == Captured(b"wxyz", b"", 4, sha256(b"wxyz").hexdigest())


def test_of_too_much_the_beginning_and_the_end_are_kept() -> None:
    data = bytes(range(100))
    kept = fed(40, data).captured()[OUT]
    assert kept == Captured(data[:10], data[-30:], 100, sha256(data).hexdigest())


def test_two_long_streams_share_alike() -> None:
    kept = fed(40, b"a" * 100, b"b" * 100).captured()
    assert [len(part.head + part.tail) for part in kept.values()] == [20, 20]


@pytest.mark.parametrize(("short", "long"), [(OUT, ERR), (ERR, OUT)])
def test_the_short_stream_leaves_its_rest_to_the_long(short: Stream, long: Stream) -> None:
    output = Output(40)
    output.feed(short, b"s" * 4)
    output.feed(long, b"l" * 100)
    kept = output.captured()
    assert (kept[short].head, kept[short].tail) == (b"ssss", b"")
    assert len(kept[long].head + kept[long].tail) == 36


def test_with_no_room_everything_is_still_counted() -> None:
    kept = fed(0, b"abc").captured()[OUT]
    assert kept == Captured(b"", b"", 3, sha256(b"abc").hexdigest())


@given(
    most=st.integers(0, 200),
    pieces=st.lists(st.tuples(st.sampled_from(list(Stream)), st.binary(max_size=120))),
)
def test_whatever_is_written_in_whatever_pieces(
    most: int, pieces: list[tuple[Stream, bytes]]
) -> None:
    output = Output(most)
    for stream, data in pieces:
        output.feed(stream, data)
    kept = output.captured()
    whole = {s: b"".join(data for at, data in pieces if at is s) for s in Stream}
    sizes = {s: len(kept[s].head) + len(kept[s].tail) for s in Stream}
    for stream in Stream:
        part = kept[stream]
        assert whole[stream].startswith(part.head)
        assert whole[stream].endswith(part.tail)
        assert (part.total, part.sha256) == (
            len(whole[stream]),
            sha256(whole[stream]).hexdigest(),
        )
    # Nothing is left out while there is room for it.
    assert sum(sizes.values()) == min(most, len(whole[OUT]) + len(whole[ERR]))


def test_a_tail_may_reach_back_into_the_first_bytes() -> None:
    output = fed(66, bytes(range(60)), b"e" * 7)
    kept = output.captured()[OUT]
    assert (kept.head, kept.tail) == (bytes(range(14)), bytes(range(15, 60)))


def test_memory_stays_bounded_by_what_may_be_kept() -> None:
    output = Output(4096)
    for _ in range(2000):
        output.feed(OUT, b"x" * 8192)
    kept = output._kept[OUT]
    assert len(kept._head) + len(kept._tail) <= 2 * 4096 + 8192
    assert kept.total == 2000 * 8192


def test_a_live_piece_comes_again_unchanged_until_it_was_sent() -> None:
    output = fed(1000, b"abc")
    first = output.live()
    output.feed(OUT, b"def")
    assert output.live() == first == [Chunk(OUT, 0, b"abc")]
    output.sent(first[0])
    assert output.live() == [Chunk(OUT, 3, b"def")]


def test_both_streams_have_their_own_offsets() -> None:
    output = fed(1000, b"abc", b"wx")
    assert output.live() == [Chunk(OUT, 0, b"abc"), Chunk(ERR, 0, b"wx")]


def test_when_nothing_waits_nothing_is_live() -> None:
    output = fed(1000, b"abc")
    assert output.has_live() is True
    for chunk in output.live():
        output.sent(chunk)
    assert output.has_live() is False
    assert output.live() == []


def test_a_slow_network_misses_the_oldest_bytes_and_the_offset_says_so() -> None:
    output = Output(10**6)
    data = bytes(i % 251 for i in range(100_000))
    output.feed(OUT, data)
    chunk = output.live()[0]
    assert chunk.offset == 100_000 - 64 * 1024
    assert chunk.data == data[chunk.offset : chunk.offset + LIVE_CHUNK_BYTES]


def test_live_pieces_end_with_the_commands_share() -> None:
    output = fed(5, b"abcdef")
    output.sent(output.live()[0])
    output.feed(OUT, b"more")
    assert (output.live(), output.has_live()) == ([], False)
