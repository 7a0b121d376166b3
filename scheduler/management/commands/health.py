"""Print how the queue is, as JSON; the exit status says it in one figure."""

import json
import sys
from typing import Any

import django.db
from django.core.management.base import BaseCommand
from django.core.serializers.json import DjangoJSONEncoder
from django.utils import timezone

from scheduler.public import queue_health
from scheduler.rules.health import Verdict, document

STATUS = {Verdict.OK: 0, Verdict.DEGRADED: 1, Verdict.DOWN: 2}


class Command(BaseCommand):
    """The queue-health report for monitoring: exit 0 ok, 1 degraded, 2 down."""

    help = "Print the queue-health report as JSON; exit 0 ok, 1 degraded, 2 down."
    # It must answer when something is wrong, and as fast as it can.
    requires_system_checks = ()

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Print the report and exit."""
        try:
            health = queue_health(timezone.now())
        except django.db.Error as error:
            reason = f"the database does not answer: {str(error).strip() or type(error).__name__}"
            self._answer({"verdict": Verdict.DOWN, "reasons": [reason]}, Verdict.DOWN)
        else:
            self._answer(document(health), health.verdict)

    def _answer(self, report: dict[str, object], verdict: Verdict) -> None:
        self.stdout.write(json.dumps(report, cls=DjangoJSONEncoder, indent=2))
        sys.exit(STATUS[verdict])
