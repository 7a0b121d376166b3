"""How far ahead a runner takes tasks."""

from scheduler.rules.pace import MOST_AHEAD, Pace


def test_nothing_is_taken_ahead_before_anything_is_known() -> None:
    assert Pace().ahead == 0


def test_short_bodies_are_taken_ahead_and_long_ones_are_not() -> None:
    short, middling, long = Pace(), Pace(), Pace()
    short.note(0.0)
    middling.note(0.004)
    long.note(0.5)

    assert (short.ahead, middling.ahead, long.ahead) == (MOST_AHEAD, 5, 0)


def test_one_long_body_among_short_ones_stops_it_for_a_while() -> None:
    pace = Pace()
    pace.note(0.0)
    pace.note(1.0)
    assert pace.ahead == 0

    for _ in range(60):
        pace.note(0.0)

    assert pace.ahead == MOST_AHEAD


def test_a_stall_stops_it() -> None:
    pace = Pace()
    pace.note(0.0)
    pace.stall()

    assert pace.ahead == 0
