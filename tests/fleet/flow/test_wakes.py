"""Calls to waiting agents, and how they are heard."""

import asyncio
import contextlib
from collections.abc import Callable

import pytest
from django.db import connection, transaction
from hypothesis import given
from hypothesis import strategies as st

from fleet.agent_api.listening import Ears, PostgresEars, SQLiteEars, keep_listening
from fleet.flow.wakes import KEPT, LONGEST_NOTE, _notes, called_by, wake, wake_everybody
from fleet.models import Wake

sqlite_only = pytest.mark.skipif("connection.vendor != 'sqlite'", reason="calls are rows there")


def ears() -> Ears:
    if connection.vendor == "postgresql":
        return PostgresEars(connection.get_connection_params())
    return SQLiteEars(str(connection.settings_dict["NAME"]), look_every=0.01)


class UndoneError(Exception):
    """Rolls a transaction back."""


def heard_of(act: Callable[[], None]) -> list[list[int] | None]:
    """Return what is heard of `act`, up to the call of everybody that follows it."""

    async def scene() -> list[list[int] | None]:
        heard: asyncio.Queue[list[int] | None] = asyncio.Queue()
        chore = asyncio.create_task(keep_listening(ears(), heard.put_nowait))
        async with asyncio.timeout(20):
            assert await heard.get() is None  # whoever begins to listen calls everybody
            await asyncio.to_thread(_in_own_connection, act)
            found: list[list[int] | None] = []
            while (note := await heard.get()) is not None:
                found.append(note)
        chore.cancel()
        await asyncio.gather(chore, return_exceptions=True)
        return found

    return asyncio.run(scene())


def _in_own_connection(act: Callable[[], None]) -> None:
    try:
        act()
        wake_everybody()
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_a_call_is_heard_when_it_commits() -> None:
    assert heard_of(lambda: wake([3, 1, 3])) == [[1, 3]]


@pytest.mark.django_db(transaction=True)
def test_a_call_that_is_rolled_back_is_never_heard() -> None:
    def act() -> None:
        with contextlib.suppress(UndoneError), transaction.atomic():
            wake([1])
            raise UndoneError

    assert heard_of(act) == []


@pytest.mark.django_db(transaction=True)
def test_a_call_of_many_agents_is_heard_of_each() -> None:
    heard = heard_of(lambda: wake(range(10**9, 10**9 + 3_000)))

    assert len(heard) == 5
    assert [agent for note in heard for agent in note or []] == list(range(10**9, 10**9 + 3_000))


@pytest.mark.django_db
@sqlite_only
def test_a_call_of_nobody_is_not_made() -> None:
    wake([])

    assert Wake.objects.count() == 0


@pytest.mark.django_db
@sqlite_only
def test_more_than_five_thousand_are_called_as_everybody() -> None:
    wake(range(5_001))

    assert [row.agents for row in Wake.objects.all()] == ["*"]


@pytest.mark.django_db
@sqlite_only
def test_old_calls_are_deleted() -> None:
    first = Wake.objects.create(agents="1")
    Wake.objects.create(pk=first.pk + KEPT - 1, agents="2")

    wake([3])

    assert [row.agents for row in Wake.objects.order_by("pk")] == ["2", "3"]


@pytest.mark.django_db(transaction=True)
def test_a_listener_whose_database_is_gone_goes_on_trying() -> None:
    class Deaf:
        tries = 0

        async def listen(self, called: Callable[[list[int] | None], None]) -> None:
            self.tries += 1
            if self.tries < 3:
                raise OSError("no route to host")
            called([7])
            await asyncio.Event().wait()

    async def scene() -> None:
        heard: asyncio.Queue[list[int] | None] = asyncio.Queue()
        chore = asyncio.create_task(keep_listening(Deaf(), heard.put_nowait, first_pause=0.001))
        async with asyncio.timeout(20):
            assert await heard.get() == [7]
        chore.cancel()

    asyncio.run(scene())


@given(st.lists(st.integers(1, 2**63 - 1), max_size=1500, unique=True))
def test_notes_are_short_enough_and_name_every_agent(agents: list[int]) -> None:
    notes = list(_notes(agents))

    assert all(len(note) <= LONGEST_NOTE for note in notes)
    assert [agent for note in notes for agent in called_by(note) or []] == agents


@pytest.mark.parametrize("note", ["", "x", "1;2", "-1", "\u0661", "1,x"])
def test_a_note_that_is_no_list_of_agents_calls_no_stranger(note: str) -> None:
    assert called_by(note) == ([1] if note == "1,x" else [])
