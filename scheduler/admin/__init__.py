"""The admin's pages of the scheduler, one module a table."""

from scheduler.admin.audit import AuditEntryAdmin
from scheduler.admin.queues import QueueAdmin
from scheduler.admin.runners import RunnerAdmin
from scheduler.admin.runs import RunAdmin
from scheduler.admin.tasks import TaskAdmin

__all__ = ["AuditEntryAdmin", "QueueAdmin", "RunAdmin", "RunnerAdmin", "TaskAdmin"]
