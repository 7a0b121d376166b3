"""Delete history that is old enough, in batches that hold no lock for long.

Strictly older: what is exactly as old as its retention stays.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet

from fleet.conf import retention
from fleet.models import (
    Command,
    Evaluation,
    Execution,
    Occurrence,
    Output,
    OutputChunk,
    Result,
    Wave,
)
from fleet.rules.command_states import TERMINAL
from fleet.rules.execution_states import ExecutionState

BATCH = 1000
_OVER = [ExecutionState.ENDED.value, ExecutionState.CANCELLED.value]
_TERMINAL = [state.value for state in TERMINAL]


def prune_results(now: datetime) -> int:
    """Delete old results; success facts are kept elsewhere, and for ever."""
    old = Result.objects.filter(received_at__lt=now - retention().results)
    return _in_batches(old.order_by("received_at"))


def prune_output(now: datetime) -> int:
    """Delete old output, final and of runs that never ended."""
    cutoff = now - retention().output
    old = Output.objects.filter(received_at__lt=cutoff)
    chunks = _oldest_first(OutputChunk.objects.all(), "received_at", cutoff)
    return _in_batches(old.order_by("received_at")) + chunks


def prune_executions(now: datetime) -> int:
    """Delete old commands and executions that are over, the waves with them."""
    before = first_id_at(now - retention().results)
    commands = Command.objects.filter(pk__lt=before, state__in=_TERMINAL)
    count = _in_batches(commands.order_by("pk"))
    left = Command.objects.filter(execution=OuterRef("pk"))
    over = Execution.objects.filter(~Exists(left), pk__lt=before, state__in=_OVER)
    while keys := list(over.order_by("pk").values_list("pk", flat=True)[:BATCH]):
        Wave.objects.filter(execution__in=keys).delete()
        count += _delete(Execution.objects.filter(pk__in=keys))
    return count


def prune_evaluations(now: datetime) -> int:
    """Delete old reasons; the one in force stays however old it is."""
    cutoff = now - retention().evaluations
    return _oldest_first(Evaluation.objects.all(), "since", cutoff, until__lt=cutoff)


def prune_occurrences(now: datetime) -> int:
    """Delete old nominal times; they are far behind what is settled."""
    cutoff = now - retention().occurrences
    return _oldest_first(Occurrence.objects.all(), "settled_at", cutoff)


def first_id_at(moment: datetime) -> UUID:
    """The smallest uuid7 of a moment: ids below it are older."""
    milliseconds = int(moment.timestamp() * 1000)
    return UUID(int=milliseconds << 80 | 0x7 << 76 | 0x2 << 62)


def _in_batches(rows: "QuerySet[Any]") -> int:
    """Delete rows that an index finds."""
    total = 0
    while keys := list(rows.values_list("pk", flat=True)[:BATCH]):
        total += _delete(rows.order_by().filter(pk__in=keys))
    return total


def _oldest_first(rows: "QuerySet[Any]", age: str, cutoff: datetime, **over: object) -> int:
    """Delete rows older than the cutoff from a table without an index by `age`.

    Keys grow with age, so reading stops at the first batch that ends young. `over` are further
    conditions for rows that may go.
    """
    total, after = 0, 0
    while True:
        window = rows.filter(pk__gt=after).order_by("pk")
        found = list(window.values_list("pk", age)[:BATCH])
        if not found:
            return total
        keys = [key for key, at in found if at < cutoff]
        total += _delete(rows.filter(pk__in=keys, **over))
        after, youngest = found[-1]
        if youngest >= cutoff:
            return total


def _delete(rows: "QuerySet[Any]") -> int:
    count, _ = rows.delete()
    return count
