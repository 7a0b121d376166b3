"""`freeze`: show, set and clear the freeze of the fleet."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from fleet.flow.freeze import known_freeze
from fleet.operations.freezing import clear_freeze, set_freeze
from fleet.rules.freeze import FreezeState
from fleet.rules.refusals import Refusal
from scheduler.management.acting import command_actor

# The option, and the manifest's key.
_OPTIONS = {
    "reason": "why; shown on every page",
    "from": "a date or a date-time with offset; now without it",
    "until": "likewise; until it is cleared without it",
    "tz": "the zone of dates: local, utc or a name such as Europe/Budapest",
}


class Command(BaseCommand):
    """Answers with the freeze as it is after the command."""

    help = "Show, set or clear the freeze: while the fleet is frozen, nothing is handed out to PCs."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the three verbs."""
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="status|set|clear")
        verbs.add_parser("status", help="print whether the fleet is frozen")
        verbs.add_parser("clear", help="thaw")
        setting = verbs.add_parser("set", help="freeze")
        for key, meaning in _OPTIONS.items():
            setting.add_argument(f"--{key}", required=key == "reason", help=meaning)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Do it and print the state."""
        now = timezone.now()
        try:
            if options["verb"] == "set":
                document = {key: options[key] for key in _OPTIONS if options.get(key)}
                set_freeze({"freeze": document}, actor=command_actor(), now=now)
            elif options["verb"] == "clear":
                clear_freeze(actor=command_actor(), now=now)
        except Refusal as refusal:
            raise CommandError(refusal.message) from None
        for line in _lines(known_freeze(now)):
            self.stdout.write(line)


def _lines(state: FreezeState) -> list[str]:
    lines = [state.words]
    if state.starts_at is not None:
        lines.append(f"freezes at {state.starts_at:%Y-%m-%d %H:%M} UTC")
    if state.until is not None:
        lines.append(f"until {state.until:%Y-%m-%d %H:%M} UTC")
    return lines
