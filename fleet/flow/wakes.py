"""Call agents that wait: something changed that concerns them.

A call is a hint without content, and belongs to the transaction in which it is made: it goes out
when that commits, and not at all when it is rolled back.
"""

from collections.abc import Iterable

from django.db import connection

from fleet.models import Wake

CHANNEL = "kanade_agents"
EVERYBODY = "*"
# PostgreSQL takes notes of less than 8,000 bytes.
LONGEST_NOTE = 7_900
# More calls than that, and it is cheaper to call everybody.
MOST_NAMED = 5_000
# Who reads calls looks several times a second; so many more are kept for one that was busy.
KEPT = 1_000


def wake(agent_ids: Iterable[int]) -> None:
    """Call these agents when the current transaction commits."""
    named = sorted(set(agent_ids))
    notes = [EVERYBODY] if len(named) > MOST_NAMED else list(_notes(named))
    for note in notes:
        _send(note)


def wake_everybody() -> None:
    """Call all agents when the current transaction commits."""
    _send(EVERYBODY)


def called_by(note: str) -> list[int] | None:
    """Return the agents that a note calls, or None for all of them.

    Anybody may send a note on the channel, so what is no list of agents calls nobody.
    """
    if note == EVERYBODY:
        return None
    return [int(word) for word in note.split(",") if word.isascii() and word.isdigit()]


def _notes(agent_ids: Iterable[int]) -> Iterable[str]:
    note = ""
    for agent_id in agent_ids:
        longer = f"{note},{agent_id}" if note else str(agent_id)
        if len(longer) > LONGEST_NOTE:
            yield note
            longer = str(agent_id)
        note = longer
    if note:
        yield note


def _send(note: str) -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, note])
        return
    made = Wake.objects.create(agents=note)
    Wake.objects.filter(pk__lte=made.pk - KEPT).delete()
