"""The tables of the scheduler."""

from scheduler.models.audit import AuditEntry
from scheduler.models.edges import Dependency
from scheduler.models.queues import Queue
from scheduler.models.runners import Runner
from scheduler.models.runs import Run
from scheduler.models.tasks import Task

__all__ = ["AuditEntry", "Dependency", "Queue", "Run", "Runner", "Task"]
