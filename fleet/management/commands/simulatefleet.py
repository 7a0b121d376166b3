"""`simulatefleet`: many agents in one process, against a running server."""

import asyncio
import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from fleet.agent.address import AddressError
from fleet.management.simulation.crowd import Outcome, simulate
from fleet.management.simulation.pc import Habits
from fleet.models import Agent, EnrolmentToken
from fleet.operations.agents import revoke_agent
from fleet.operations.enrolment_tokens import (
    MOST_USES,
    make_enrolment_token,
    revoke_enrolment_token,
)
from scheduler.management.acting import command_actor

MOST_MINUTES = 24 * 60
MOST_OUTPUT = 256 * 1024


class Command(BaseCommand):
    """Enrols the agents with a token of its own, lets them work, prints what was counted."""

    help = (
        "Simulate agents: they enrol, exchange, wait, and answer commands without running them. "
        "Prints one line of JSON; fails when a request failed. The PCs are revoked in the end."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        option = parser.add_argument
        option("--agents", type=int, default=50, metavar="N", help="how many (default: 50)")
        option("--minutes", type=float, default=1.0, metavar="M", help="how long (default: 1)")
        option("--server", metavar="URL", help="where it answers (default: KANADE_BASE_URL)")
        option("--wait-server", metavar="URL", help="where waiting is answered, if elsewhere")
        option("--ca", type=Path, metavar="FILE", help="trust these certificate authorities alone")
        option(
            "--token",
            help="an enrolment token of the server; without it one is made in the database of "
            "these settings, which must be the server's",
        )
        option("--output", type=int, default=500, metavar="BYTES", help="of each script")
        option("--longest", type=float, default=3.0, metavar="SECONDS", help="a script pretends")
        option("--keep", action="store_true", help="leave the PCs enrolled")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Simulate; CommandError when anything failed."""
        server = options["server"] or settings.KANADE_BASE_URL
        _require_bounds(options, server)
        made = None if options["token"] else _new_token(options["agents"])
        token = options["token"] or (made[1] if made else "")
        habits = Habits(
            server,
            options["wait_server"] or server,
            token,
            options["output"],
            options["longest"],
        )
        try:
            outcome = self._simulate(habits, options)
        except (AddressError, OSError) as error:
            raise CommandError(str(error)) from None
        finally:
            if made:
                revoke_enrolment_token(made[0], actor=command_actor(), now=timezone.now())
        if made and not options["keep"]:
            _revoke(outcome.agent_ids)
        self.stdout.write(json.dumps({"agents": options["agents"], **outcome.tally.document()}))
        if outcome.tally.errors:
            raise CommandError(f"{outcome.tally.errors} requests failed")

    def _simulate(self, habits: Habits, options: dict[str, Any]) -> Outcome:
        def on_ready() -> None:
            self.stderr.write(f"{options['agents']} agents work for {options['minutes']} minutes.")
            self.stderr.flush()

        return asyncio.run(
            simulate(
                habits,
                agents=options["agents"],
                seconds=options["minutes"] * 60,
                ca=options["ca"],
                clock=timezone.now,
                on_ready=on_ready,
            )
        )


def _require_bounds(options: dict[str, Any], server: str) -> None:
    if not server:
        raise CommandError("give --server URL: KANADE_BASE_URL is not set")
    bounds = {
        "agents": (1, MOST_USES),
        "minutes": (0, MOST_MINUTES),
        "output": (0, MOST_OUTPUT),
        "longest": (0, 3600),
    }
    for name, (least, most) in bounds.items():
        if not least <= options[name] <= most:
            raise CommandError(f"--{name}: write a number from {least} to {most}")


def _new_token(agents: int) -> tuple[EnrolmentToken, str]:
    return make_enrolment_token(
        uses=agents, needs_acceptance=False, actor=command_actor(), now=timezone.now()
    )


def _revoke(agent_ids: list[str]) -> None:
    """Shut the PCs out, so that nobody waits for machines that never were."""
    for agent in Agent.objects.filter(uuid_text__in=agent_ids):
        revoke_agent(
            agent, actor=command_actor(), now=timezone.now(), reason="the simulation is over"
        )
