"""Wait tickets."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.rules.tickets import GOOD_FOR, Ticket, read_ticket, write_ticket

NOW = datetime(2026, 12, 1, 12, 0, 0, 123000, tzinfo=UTC)
KEY, OTHER_KEY = b"k" * 32, b"o" * 32
TICKET = Ticket(17, NOW)
MILLISECOND = timedelta(milliseconds=1)


def test_a_ticket_is_read_back_as_it_was_written() -> None:
    assert read_ticket(write_ticket(TICKET, key=KEY), key=KEY, now=NOW) == TICKET


def test_a_ticket_written_under_another_key_is_refused() -> None:
    assert read_ticket(write_ticket(TICKET, key=OTHER_KEY), key=KEY, now=NOW) is None


@pytest.mark.parametrize(
    ("age", "good"),
    [
        (timedelta(0), True),
        (GOOD_FOR - MILLISECOND, True),
        (GOOD_FOR, False),
        (timedelta(minutes=-1), True),
        (timedelta(minutes=-1) - MILLISECOND, False),
    ],
)
def test_a_ticket_is_good_for_five_minutes(age: timedelta, good: bool) -> None:
    read = read_ticket(write_ticket(TICKET, key=KEY), key=KEY, now=NOW + age)

    assert (read is not None) is good


def test_a_ticket_for_one_agent_cannot_be_turned_into_one_for_another() -> None:
    text = write_ticket(TICKET, key=KEY)

    assert read_ticket(text.replace("17.", "18.", 1), key=KEY, now=NOW) is None
    assert read_ticket(text.replace("17.", "017.", 1), key=KEY, now=NOW) is None


@given(st.text(max_size=100))
def test_no_other_text_is_a_ticket(text: str) -> None:
    assert read_ticket(text, key=KEY, now=NOW) is None


@given(st.integers(0, 87), st.characters(codec="utf-8"))
def test_a_ticket_with_one_character_changed_is_refused(position: int, char: str) -> None:
    text = write_ticket(TICKET, key=KEY)
    position %= len(text)
    changed = text[:position] + char + text[position + 1 :]

    assert changed == text or read_ticket(changed, key=KEY, now=NOW) is None
