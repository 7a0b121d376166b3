"""What an edit changes, key by key."""

import pytest

from fleet.rules.differences import Difference, differences


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [Difference("a", 1, 2)]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, [Difference("a.c", 2, 3)]),
        ({"a": [1, 2]}, {"a": [1, 3]}, [Difference("a", [1, 2], [1, 3])]),
        ({}, {"a": 1}, [Difference("a", None, 1)]),
        ({"a": 1}, {}, [Difference("a", 1, None)]),
        ({"b": 1, "a": 1}, {"a": 2, "b": 2}, [Difference("a", 1, 2), Difference("b", 1, 2)]),
        ({"a": {"b": 1}}, {"a": 1}, [Difference("a", {"b": 1}, 1)]),
        ({"a": True}, {"a": 1}, [Difference("a", True, 1)]),
        (None, {"a": 1}, [Difference("", None, {"a": 1})]),
    ],
)
def test_the_changed_values_are_named(
    before: object, after: object, expected: list[Difference]
) -> None:
    assert list(differences(before, after)) == expected
