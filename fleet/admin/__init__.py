"""The admin's pages of the fleet, one module a table."""

from fleet.admin.accounts import StaffAdmin
from fleet.admin.agents import AgentAdmin
from fleet.admin.api_tokens import ApiTokenAdmin
from fleet.admin.commands import CommandAdmin
from fleet.admin.enrolment_tokens import EnrolmentTokenAdmin
from fleet.admin.executions import ExecutionAdmin
from fleet.admin.freezes import FreezeAdmin
from fleet.admin.groups import GroupAdmin
from fleet.admin.jobs import JobAdmin
from fleet.admin.results import ResultAdmin
from fleet.admin.revisions import JobRevisionAdmin
from fleet.admin.schedules import ScheduleAdmin

__all__ = [
    "AgentAdmin",
    "ApiTokenAdmin",
    "CommandAdmin",
    "EnrolmentTokenAdmin",
    "ExecutionAdmin",
    "FreezeAdmin",
    "GroupAdmin",
    "JobAdmin",
    "JobRevisionAdmin",
    "ResultAdmin",
    "ScheduleAdmin",
    "StaffAdmin",
]
