"""Each statement of each of the core's operations fails once, before and after its effect."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.db.models import Model

from scheduler.models import AuditEntry, Dependency, Queue, Run, Task
from tests.clock import ManualClock
from tests.faults.core_operations import OPERATIONS, Operation, Stage
from tests.scheduler.engine.test_faults import MOST_STATEMENTS, Fault
from tests.scheduler.make import only_kinds

pytestmark = pytest.mark.django_db
TABLES: tuple[type[Model], ...] = (Task, Dependency, Run, Queue, AuditEntry)
# Given out by the database, and different in each try.
VOLATILE = {"id", "beat_at", "hook_run"}


@pytest.fixture
def stage() -> Iterator[Stage]:
    with only_kinds():
        yield Stage.make(ManualClock())


def tables() -> list[list[dict[str, Any]]]:
    """Everything that the operations write, without what the database gives out."""
    keys = dict(Task.objects.values_list("pk", "key"))
    return [
        [_plain(dict(row), keys) for row in model._default_manager.order_by("pk").values()]
        for model in TABLES
    ]


def _plain(row: dict[str, Any], keys: dict[int, str | None]) -> dict[str, Any]:
    plain = {name: value for name, value in row.items() if name not in VOLATILE}
    plain["has_hook"] = row.get("hook_run") is not None
    for name in ("task_id", "dependency_id"):
        if name in row:
            plain[name] = keys[row[name]]
    return plain


def outcome_of(operate: Operation, fault: Fault) -> list[list[dict[str, Any]]] | None:
    """What the tables are after a faulty try, which is undone; None if there was no fault."""
    with transaction.atomic():
        try:
            with connection.execute_wrapper(fault):
                operate()
        except OperationalError:
            assert fault.hit
            # A statement without a transaction of its own marks this one, and harms it not.
            transaction.set_rollback(False)
        else:
            assert not fault.hit, "the fault was swallowed"
        found = tables()
        transaction.set_rollback(True)
    return found if fault.hit else None


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", list(OPERATIONS))
def test_a_statement_that_fails_leaves_all_or_nothing(
    stage: Stage, name: str, *, after: bool
) -> None:
    operate = OPERATIONS[name](stage)
    nothing = tables()
    with transaction.atomic():
        operate()
        whole = tables()
        transaction.set_rollback(True)
    assert whole != nothing

    for number in range(1, MOST_STATEMENTS):
        found = outcome_of(operate, Fault(number, after=after))
        if found is None:
            break
        # Committed although its answer was lost, or before its runners were woken.
        assert found in [nothing, whole], f"statement {number}"
    assert number > 1
    operate()
    assert tables() == whole
