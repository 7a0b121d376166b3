"""One bad row does not stop the others, and is not swallowed."""

import logging

import pytest

from scheduler.rules.contained import contained


def test_an_error_is_logged_with_its_facts_and_the_next_line_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done = []
    with caplog.at_level(logging.ERROR):
        for number in (1, 0, 2):
            with contained("divide", number=number):
                done.append(10 // number)

    assert done == [10, 5]
    (record,) = caplog.records
    assert record.getMessage() == "divide"
    assert record.__dict__["number"] == 0
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


def test_a_wish_to_stop_passes() -> None:
    with pytest.raises(KeyboardInterrupt), contained("work"):
        raise KeyboardInterrupt
