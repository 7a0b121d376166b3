"""T-29: JSON is bounded before it is parsed, and ambiguous JSON is refused by name."""

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.rules.strict_json import StrictJSONError, loads

REFUSED = {
    "nested arrays": (b"[" * 100_000, "nested deeper than 16 levels"),
    "nested objects": (b'{"a":' * 17 + b"1" + b"}" * 17, "nested deeper than 16 levels"),
    "duplicate key": (b'{"a": 1, "a": 2}', "the key 'a' stands twice"),
    "duplicate key, escaped": (b'{"a": 1, "\\u0061": 2}', "the key 'a' stands twice"),
    "NaN": (b'{"a": NaN}', "NaN is not JSON"),
    "infinity": (b"-Infinity", "-Infinity is not JSON"),
    "float overflow": (b"1e400", "too large"),
    "integer beyond 2**53": (b"9007199254740993", "beyond 2**53"),
    "a million digits": (b"9" * 1_000_000, "beyond 2**53"),
    "NUL": (b'{"a": "x\\u0000"}', "a has a NUL character at position 1"),
    "lone surrogate": (b'["\\ud800"]', "[0] has half a surrogate pair"),
    "surrogate in a key": (b'{"\\ud800": 1}', "a key in the object has half a surrogate pair"),
    "control character": (b'["\\u001b[31m"]', "control character U+001B"),
    "latin-1": (b'"\xe9"', "not UTF-8 at byte 1"),
    "utf-16": ('"a"'.encode("utf-16"), "not UTF-8"),
    "byte order mark": (b"\xef\xbb\xbf{}", "byte order mark"),
    "trailing comma": (b"[1,]", "not JSON at line 1"),
    "two values": (b"{}{}", "not JSON at line 1, column 3"),
    "nothing": (b"", "not JSON"),
    "single quotes": (b"{'a': 1}", "not JSON"),
    "comment": (b"{} // x", "not JSON"),
}


@pytest.mark.parametrize(("data", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_bad_json_is_refused_by_name(data: bytes, said: str) -> None:
    with pytest.raises(StrictJSONError) as error:
        loads(data)

    assert said in str(error.value)


def test_a_body_over_the_limit_is_not_parsed() -> None:
    with pytest.raises(StrictJSONError, match="has 12 bytes; at most 11 are read"):
        loads(b'"0123456789"', max_bytes=11)


def test_too_many_values_are_refused() -> None:
    with pytest.raises(StrictJSONError, match="more than 10 values"):
        loads(b"[1,1,1,1,1,1,1,1,1,1,1]", max_nodes=10)


def test_brackets_within_texts_do_not_nest() -> None:
    assert loads(json.dumps(["[" * 100, '\\"[[[' * 30]).encode()) == ["[" * 100, '\\"[[[' * 30]


def test_a_machines_texts_pass_for_their_reader_to_clean() -> None:
    assert loads(b'["a\\u0000", "\\ud800"]', any_text=True) == ["a\0", "\ud800"]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs", "Cc"])), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_sound_json_comes_back_as_it_was(value: object) -> None:
    assert loads(json.dumps(value).encode(), max_depth=64) == value


@given(st.binary(max_size=300))
def test_any_bytes_give_a_value_or_the_one_error(data: bytes) -> None:
    with contextlib.suppress(StrictJSONError):
        loads(data)


MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b'"' + b'\\"' * (MEGABYTE // 2) + b"\\\n", id="escaped quotes, no end"),
        pytest.param(b'"' * MEGABYTE, id="quotes"),
        pytest.param(b'"' + b"\\" * MEGABYTE, id="backslashes"),
        pytest.param(b'"\\\n' * (MEGABYTE // 3), id="line ends escaped"),
    ],
)
def test_a_megabyte_of_quotes_is_read_once_and_refused(data: bytes) -> None:
    started = time.process_time()

    with pytest.raises(StrictJSONError):
        loads(data)

    # Trying again at each quote takes hours for this; reading once takes a tenth of a second.
    assert time.process_time() - started < 20


def test_brackets_after_an_unfinished_string_never_reach_the_parser() -> None:
    with pytest.raises(StrictJSONError, match="not JSON"):
        loads(b'["' + b"[" * 100_000)


def test_a_string_with_an_escaped_end_hides_its_brackets_alone() -> None:
    assert loads(b'["\\\\", "\\"[[[[[[[[[[[[[[[[[[[["]') == ["\\", '"' + "[" * 20]
    with pytest.raises(StrictJSONError, match="nested"):
        loads(b'["\\\\"' + b"[" * 20)
