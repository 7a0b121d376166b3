"""`preview`: when a schedule fires next."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from fleet.flow.manifests import local_zone, schedule_manifest
from fleet.models import Schedule
from fleet.rules.manifest import ManifestError
from fleet.rules.preview import DEFAULT_COUNT, MOST_COUNT, diagnostics, empty_note, preview
from fleet.rules.when import words


class Command(BaseCommand):
    """Prints one line a fire: in the schedule's zone, and in UTC."""

    help = "Print the next fires of SCHEDULE in its zone and in UTC."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("schedule", metavar="SCHEDULE", help="id of a schedule")
        parser.add_argument(
            "--count",
            type=int,
            default=DEFAULT_COUNT,
            choices=range(1, MOST_COUNT + 1),
            metavar="N",
            help=f"how many fires, 1 to {MOST_COUNT} (default {DEFAULT_COUNT})",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Print the fires, and what should be known about the schedule."""
        schedule = Schedule.objects.with_slug(options["schedule"]).first()
        if schedule is None:
            raise CommandError(f'there is no schedule "{options["schedule"]}"')
        try:
            manifest = schedule_manifest(schedule)
        except ManifestError as error:
            raise CommandError(f"what is stored cannot be read: {error}") from None
        local, now = local_zone(), timezone.now()
        state = "" if schedule.enabled else ", disabled"
        tz = manifest.zone(local)
        self.stdout.write(f"{schedule.slug}: {words(manifest.when)} in {tz.key}{state}")
        fires = preview(manifest, now=now, count=options["count"], local=local)
        for fire in fires:
            there = fire.astimezone(tz)
            self.stdout.write(f"{there:%a %Y-%m-%d %H:%M %Z}   {fire:%Y-%m-%d %H:%M} UTC")
        if not fires:
            self.stdout.write(empty_note(manifest))
        for note in diagnostics(manifest, now=now, local=local):
            self.stderr.write(f"note: {note}")
