"""What the page of one PC shows, read in a fixed number of queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.admin.cells import last_seen
from fleet.models import Agent, AgentState, Command, Job, Result, ScheduleAgent
from fleet.rules.presence import presence
from scheduler.rules.spans import span_words

MOST_OPEN = 50
MOST_RESULTS = 25
MOST_FAILING = 25
# A clock that is further off than that is worth a word.
TOLERATED_SKEW = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One result with the name of its job."""

    result: Result
    job_slug: str


@dataclass(frozen=True, slots=True)
class AgentPage:
    """Everything about one PC."""

    agent: Agent
    presence: str
    last_seen_at: datetime | None
    clock_note: str
    groups: Sequence[str]
    facts: Sequence[tuple[str, str]]
    commands: Sequence[Command]
    results: Sequence[ResultRow]
    failing: Sequence[ScheduleAgent]
    may_be_accepted: bool
    may_be_revoked: bool

    @property
    def outcomes(self) -> list[str]:
        """How the last runs ended, the oldest first."""
        return [row.result.outcome for row in reversed(self.results)]


def agent_page(agent: Agent, *, now: datetime) -> AgentPage:
    """Read the page of `agent`."""
    seen = last_seen(agent)
    return AgentPage(
        agent=agent,
        presence=presence(seen, now=now),
        last_seen_at=seen,
        clock_note=_clock_note(agent),
        groups=[group.slug for group in agent.groups.all()],
        facts=_facts(agent.facts),
        commands=list(
            agent.commands.open()
            .select_related("job", "revision")
            .defer("revision__manifest")
            .order_by("-id")[:MOST_OPEN]
        ),
        results=_last_results(agent),
        failing=list(
            agent.schedule_agents.filter(failures__gt=0)
            .select_related("schedule")
            .defer("schedule__manifest")
            .order_by("-failures", "schedule__slug")[:MOST_FAILING]
        ),
        may_be_accepted=agent.state in {AgentState.PENDING, AgentState.QUARANTINED},
        may_be_revoked=agent.state != AgentState.REVOKED,
    )


def _last_results(agent: Agent) -> list[ResultRow]:
    results = list(Result.objects.filter(agent_id=agent.pk).order_by("-command_id")[:MOST_RESULTS])
    slugs = dict(
        Job.everything.filter(pk__in={result.job_id for result in results}).values_list(
            "pk", "slug"
        )
    )
    return [ResultRow(result, slugs.get(result.job_id, "deleted job")) for result in results]


def _facts(facts: object) -> list[tuple[str, str]]:
    if not isinstance(facts, dict):
        return []
    return [(str(key).replace("_", " "), _told(value)) for key, value in sorted(facts.items())]


def _told(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _clock_note(agent: Agent) -> str:
    if not hasattr(agent, "presence"):
        return ""
    skew = timedelta(milliseconds=agent.presence.skew_ms)
    if abs(skew) <= TOLERATED_SKEW:
        return ""
    return f"its clock is {span_words(skew)} {'ahead' if skew > timedelta() else 'behind'}"
