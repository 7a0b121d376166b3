"""`enroltoken`: print a token with which PCs enrol."""

import getpass
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from fleet.models import Group
from fleet.operations.enrolment_tokens import make_enrolment_token
from fleet.rules.refusals import Refusal
from scheduler.public import Actor
from scheduler.rules.durations import DurationError, parse_duration


class Command(BaseCommand):
    """Makes a token, tells about it on stderr, and prints it alone on the last line."""

    help = "Print an enrolment token, once. PCs enrol with it; it is kept as a hash only."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--group", help="id of the group that the PCs join")
        parser.add_argument("--uses", type=int, default=1, help="how many PCs may use it")
        parser.add_argument("--ttl", default="24h", help="how long it is good, at most 7d")
        parser.add_argument(
            "--accepted",
            action="store_true",
            help="PCs take work at once (otherwise those of a token for several wait for you)",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Make and print the token."""
        try:
            row, text = make_enrolment_token(
                group=_group(options["group"]),
                uses=options["uses"],
                ttl=parse_duration(options["ttl"]),
                needs_acceptance=False if options["accepted"] else None,
                actor=Actor("command", getpass.getuser()),
                now=timezone.now(),
            )
        except DurationError as error:
            raise CommandError(f"--ttl: {error}") from None
        except Refusal as refusal:
            raise CommandError(refusal.message) from None
        waits = ", and wait to be accepted" if row.needs_acceptance else ""
        self.stderr.write(
            f"For {row.max_uses} PCs until {row.expires_at:%Y-%m-%d %H:%M} UTC{waits}."
        )
        self.stdout.write(text)


def _group(slug: str | None) -> Group | None:
    if slug is None:
        return None
    group = Group.objects.with_slug(slug).first()
    if group is None:
        raise CommandError(f'--group: there is no group "{slug}"')
    return group
