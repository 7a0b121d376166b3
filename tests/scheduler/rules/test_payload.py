"""Which values can be stored and come back unchanged."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.rules.payload import MOST_BYTES, PayloadError, require_storable

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)


@given(VALUES)
def test_json_comes_back_as_it_went(value: object) -> None:
    assert require_storable(value, "it") == value


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (object(), "not JSON"),
        ({1, 2}, "not JSON"),
        (float("nan"), "not JSON"),
        ("a\0b", "NUL"),
        (["x", {"k": "\ud800"}], "surrogate"),
        ({"\0": 1}, "NUL"),
        ("x" * MOST_BYTES, "at most"),
    ],
)
def test_what_a_database_could_not_give_back_is_refused(value: object, named: str) -> None:
    with pytest.raises(PayloadError, match=named):
        require_storable(value, "it")


def test_a_text_that_only_looks_escaped_is_fine() -> None:
    assert require_storable("\\u0000", "it") == "\\u0000"


def test_a_value_without_end_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)

    with pytest.raises(PayloadError, match="not JSON"):
        require_storable(endless, "it")


def test_tuples_and_numbers_as_keys_become_what_will_be_read() -> None:
    assert require_storable({1: (2,)}, "it") == json.loads('{"1": [2]}')
