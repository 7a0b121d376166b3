"""The fleet's tables."""

from fleet.models.agents import Agent, AgentPresence, AgentState, JobAgent
from fleet.models.commands import OPEN_STATES, Command
from fleet.models.credentials import ApiToken, EnrolmentToken, ServerIdentity
from fleet.models.executions import Execution, Origin, Wave, WaveState
from fleet.models.freezes import Freeze
from fleet.models.groups import Group, Membership
from fleet.models.ids import new_id
from fleet.models.jobs import Job, JobRevision
from fleet.models.request_keys import RequestKey
from fleet.models.results import Output, OutputChunk, Result, Stream
from fleet.models.schedules import (
    Evaluation,
    Occurrence,
    OccurrenceState,
    Schedule,
    ScheduleAgent,
    Shape,
    TickMark,
)
from fleet.models.wakes import Wake

__all__ = [
    "OPEN_STATES",
    "Agent",
    "AgentPresence",
    "AgentState",
    "ApiToken",
    "Command",
    "EnrolmentToken",
    "Evaluation",
    "Execution",
    "Freeze",
    "Group",
    "Job",
    "JobAgent",
    "JobRevision",
    "Membership",
    "Occurrence",
    "OccurrenceState",
    "Origin",
    "Output",
    "OutputChunk",
    "RequestKey",
    "Result",
    "Schedule",
    "ScheduleAgent",
    "ServerIdentity",
    "Shape",
    "Stream",
    "TickMark",
    "Wake",
    "Wave",
    "WaveState",
    "new_id",
]
