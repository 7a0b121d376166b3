"""People are told what is wrong with a text; a PC's text is made harmless."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.rules.texts import TextError, clean_json, clean_text, problem_of, require_clean


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\0b", "NUL character at position 1"),
        ("\ud83d", "half a surrogate pair at position 0"),
        ("\x1b[31mred", "control character U+001B at position 0"),
        ("a\x9b", "control character U+009B at position 1"),
    ],
)
def test_a_person_is_told_which_character_is_wrong(text: str, said: str) -> None:
    with pytest.raises(TextError, match=said.replace("+", r"\+")):
        require_clean(text)


def test_lines_tabs_and_emoji_are_ordinary_text() -> None:
    assert require_clean("a\tb\r\nc 🎵 ü") == "a\tb\r\nc 🎵 ü"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\0b", "a\N{REPLACEMENT CHARACTER}b"),
        ("\udc00", "\N{REPLACEMENT CHARACTER}"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b31m", "\\x9b31m"),
        ("evil\u202egnp.exe", "evil\\u202egnp.exe"),
        ("line\n\ttab", "line\n\ttab"),
        ("over\rwrite", "over\\x0dwrite"),
    ],
)
def test_a_machines_text_is_made_harmless(text: str, kept: str) -> None:
    assert clean_text(text) == kept


def test_a_long_text_is_cut() -> None:
    assert clean_text("x" * 5000, most=10) == "x" * 10


def test_keys_of_json_are_cleaned_too() -> None:
    assert clean_json({"a\0": ["\x1b", 1, None]}) == {
        "a\N{REPLACEMENT CHARACTER}": ["\\x1b", 1, None]
    }


@given(st.text(st.characters(), max_size=50))
def test_a_cleaned_text_can_be_stored(text: str) -> None:
    assert problem_of(clean_text(text)) is None
