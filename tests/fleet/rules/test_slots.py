"""Free slots under `max_concurrent`."""

import pytest

from fleet.rules.slots import free_slots, within


@pytest.mark.parametrize(
    ("candidates", "in_flight", "cap", "kept"),
    [(10, 2, 5, 3), (4, 5, 5, 0), (4, 9, 5, 0), (2, 0, 5, 2), (5, 0, 5, 5), (0, 0, 5, 0)],
    ids=[f"14.3#{number}" for number in range(1, 7)],
)
def test_as_many_as_are_free_are_kept(candidates: int, in_flight: int, cap: int, kept: int) -> None:
    assert within(candidates, free_slots(cap, in_flight)) == kept


def test_without_a_cap_everybody_fits() -> None:
    assert within(100_000, free_slots(None, 99)) == 100_000


def test_a_count_that_could_not_be_read_leaves_nothing_free() -> None:
    """The original counted 0 and overshot; a cap that cannot be checked must hold."""
    assert free_slots(5, None) == 0
