"""The admin's pages of the fleet, one module a table."""

from fleet.admin.agents import AgentAdmin
from fleet.admin.commands import CommandAdmin
from fleet.admin.executions import ExecutionAdmin
from fleet.admin.freezes import FreezeAdmin
from fleet.admin.results import ResultAdmin

__all__ = ["AgentAdmin", "CommandAdmin", "ExecutionAdmin", "FreezeAdmin", "ResultAdmin"]
