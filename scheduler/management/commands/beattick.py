"""`beattick`: have celery beat drive Kanade's ticks."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from scheduler.beat import clock

EVERY = 5
LONGEST = 60


class Command(BaseCommand):
    """Makes or deletes the PeriodicTask that sends the ticks."""

    help = (
        "Make the PeriodicTask with which celery beat drives Kanade's ticks, instead of a "
        "runscheduler or beside it. Needs a beat with the DatabaseScheduler and a worker."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--every", type=int, default=EVERY, help="seconds between two ticks")
        parser.add_argument("--remove", action="store_true", help="delete it instead")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Make or delete it."""
        if options["remove"]:
            gone = clock.remove()
            self.stdout.write("Beat sends no ticks any more." if gone else "Beat sent no ticks.")
            return
        every = options["every"]
        if not 1 <= every <= LONGEST:
            raise CommandError(f"--every is between 1 and {LONGEST} seconds, not {every}")
        clock.install(every)
        self.stdout.write(f"Beat sends a tick every {every} s.")
