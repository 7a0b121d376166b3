"""Output on a page: nothing of it acts, nothing of it is lost without a word."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.rules.console import SHOWN_BYTES, readable, shown


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain\n", "plain\n"),
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b]0;a title\x07after", "after"),
        (b"\x1b[2J\x1b[Hcleared", "cleared"),
        (b"a\0b", "a\N{REPLACEMENT CHARACTER}b"),
        (b"one\r\ntwo\r\n", "one\ntwo\n"),
        (b"10%\r20%\r", "10%\n20%\n"),
        (b"bell\x07", "bell\\x07"),
        ("\u202eevil".encode(), "\\u202eevil"),
        (b"\xff\xfe", "\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"),
        (b"<script>alert(1)</script>", "<script>alert(1)</script>"),
    ],
)
def test_terminal_control_is_made_harmless(data: bytes, text: str) -> None:
    assert readable(data) == text


@pytest.mark.parametrize("code_page", ["cp932", "CP932"])
def test_bytes_are_read_by_the_code_page_of_the_pc(code_page: str) -> None:
    assert readable("印刷".encode("cp932"), code_page) == "印刷"


@pytest.mark.parametrize("code_page", ["no such page", "hex", "idna", "a\0b", "../etc"])
def test_an_unknown_code_page_is_read_as_utf_8(code_page: str) -> None:
    assert readable("é".encode(), code_page) == "é"


@given(st.binary(max_size=400), st.sampled_from(["", "utf-8", "cp1252", "utf-16"]))
def test_nothing_readable_is_a_control_character(data: bytes, code_page: str) -> None:
    text = readable(data, code_page)
    assert not [
        char for char in text if unicodedata.category(char) in {"Cc", "Cs"} and char not in "\n\t"
    ]


def test_a_short_output_is_shown_whole() -> None:
    result = shown(b"abc", b"def", total=6)
    assert (result.head, result.tail, result.cut, result.hidden) == ("abcdef", "", 0, 0)


def test_what_the_pc_left_out_is_counted() -> None:
    result = shown(b"abc", b"xyz", total=1_000)
    assert (result.head, result.tail, result.cut, result.hidden) == ("abc", "xyz", 994, 0)


def test_what_only_the_download_has_is_counted() -> None:
    result = shown(b"a" * (3 * SHOWN_BYTES), b"", total=3 * SHOWN_BYTES)
    assert (len(result.head), len(result.tail)) == (SHOWN_BYTES, SHOWN_BYTES)
    assert (result.cut, result.hidden) == (0, SHOWN_BYTES)


def test_a_cut_output_with_large_ends_counts_both() -> None:
    result = shown(b"a" * (SHOWN_BYTES + 1), b"b" * (SHOWN_BYTES + 2), total=10**6)
    assert result.hidden == 3
    assert result.cut == 10**6 - 2 * SHOWN_BYTES - 3


def test_no_output_is_empty() -> None:
    assert shown(b"", b"", total=0).is_empty is True
