"""`explain`: why a schedule fires or does not."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from fleet.flow.agent_views import AgentView
from fleet.flow.explaining import Explanation, explain
from fleet.flow.manifests import local_zone
from fleet.models import Agent, Schedule
from fleet.rules.bounds import BoundError, parse_bound
from fleet.rules.firing import Gate


class Command(BaseCommand):
    """Prints every gate with its verdict, and the agents that were chosen or held back."""

    help = "Say why SCHEDULE fires or does not: now, at a past time, or at a time to come."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("schedule", metavar="SCHEDULE", help="id of a schedule")
        parser.add_argument("--agent", metavar="PC", help="name or uuid of one PC to look at")
        parser.add_argument(
            "--at",
            metavar="TIME",
            help="a date, or a date-time with its offset such as 2026-07-01T09:00:00+02:00",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Print the explanation."""
        schedule = Schedule.objects.with_slug(options["schedule"]).first()
        if schedule is None:
            raise CommandError(f'there is no schedule "{options["schedule"]}"')
        found = explain(
            schedule,
            now=timezone.now(),
            agent=_agent(options["agent"]),
            at=_moment(options["at"]),
        )
        for line in lines(found):
            self.stdout.write(line)


def _agent(name: str | None) -> Agent | None:
    if name is None:
        return None
    agent = Agent.objects.named(name).first()
    if agent is None:
        raise CommandError(f'there is no PC "{name}"')
    return agent


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return parse_bound(text, local_zone())
    except BoundError as error:
        raise CommandError(f"--at: {error}") from None


def lines(found: Explanation) -> Iterator[str]:
    """The explanation as lines of text, times in UTC."""
    yield f"{found.schedule.slug} at {found.at:%Y-%m-%d %H:%M:%S} UTC ({found.tense})"
    yield found.words
    if found.opens_at:
        yield f"may open at {found.opens_at:%Y-%m-%d %H:%M:%S} UTC"
    yield from (f"note: {note}" for note in found.notes)
    yield from (_gate(gate) for gate in found.gates)
    yield from (f"  {reason}: {number}" for reason, number in found.counts.items())
    for reason, agents in found.agents.items():
        yield f"{reason}:"
        yield from (_view(view) for view in agents)
    if found.agent is not None:
        yield _view(found.agent)
    for command in found.commands:
        reason = f" ({command.reason})" if command.reason else ""
        yield f"  command {command.pk} {command.created_at:%Y-%m-%d %H:%M}: {command.state}{reason}"


def _gate(gate: Gate) -> str:
    opens = f", opens {gate.opens_at:%Y-%m-%d %H:%M:%S} UTC" if gate.opens_at else ""
    detail = f"  {gate.detail}" if gate.detail else ""
    verdict = "open  " if gate.is_open else "CLOSED"
    return f"  [{verdict}] {gate.reason.value}{detail}{opens}"


def _view(view: AgentView) -> str:
    return f"  {view.name}: {view.words}"
