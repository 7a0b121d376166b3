"""`importbeat`: django-celery-beat's PeriodicTask rows become tasks of kind `celery.send`."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from scheduler.beat.importing import HandBackError, hand_back, import_all, plan_import
from scheduler.management.acting import command_actor
from scheduler.rules.beat import Verdict


class Command(BaseCommand):
    """Prints one line a row, and what is wrong with those that cannot be carried over."""

    help = (
        "Turn the enabled PeriodicTask rows of django-celery-beat into tasks that send the same "
        "messages, and disable the rows. Exit status 1 when a row cannot be carried over; the "
        "others are all the same. Running it again does nothing more."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the option."""
        parser.add_argument(
            "--dry-run", action="store_true", help="print the plan and change nothing"
        )
        parser.add_argument(
            "--hand-back", default="", metavar="NAME",
            help="enable this row again and cancel its task, instead of importing",
        )  # fmt: skip

    def handle(self, *_args: Any, **options: Any) -> None:
        """Carry them over, report."""
        if options["hand_back"]:
            return self._hand_back(options["hand_back"])
        if options["dry_run"]:
            steps = plan_import(now=timezone.now())
        else:
            steps = import_all(actor=command_actor(), clock=timezone.now)
        counts = dict.fromkeys(Verdict, 0)
        for step in steps:
            counts[step.verdict] += 1
            out = self.stderr if step.verdict is Verdict.CANNOT else self.stdout
            out.write(f"{step.verdict.value:<7} {step.name}: {step.words}")
        done = "would be imported" if options["dry_run"] else "imported"
        self.stdout.write(f"{counts[Verdict.IMPORT]} {done}, {counts[Verdict.LEAVE]} left alone")
        if counts[Verdict.CANNOT]:
            raise CommandError(f"{counts[Verdict.CANNOT]} rows cannot be carried over")
        return None

    def _hand_back(self, name: str) -> None:
        try:
            hand_back(name, actor=command_actor(), now=timezone.now())
        except HandBackError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"Beat sends {name} from now on.")
