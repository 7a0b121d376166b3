"""What a simulation counts."""

from fleet.management.simulation.tally import Tally


def test_the_times_of_a_fleet_that_is_switched_on_do_not_count() -> None:
    tally = Tally()
    tally.note_exchange(9.0, carried=True)
    tally.note_exchange(8.0, carried=False)
    tally.start_over()
    tally.note_exchange(0.5, carried=True)

    told = tally.document()

    assert (told["exchanges"], told["exchanges_that_carry"]) == (3, 1)
    assert (told["carrying_p99_ms"], told["empty_p99_ms"]) == (500.0, None)
