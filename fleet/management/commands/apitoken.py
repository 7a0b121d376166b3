"""`apitoken`: print an API token of a member of staff."""

import getpass
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from fleet.operations.tokens_of_staff import make_api_token
from fleet.rules.refusals import Refusal
from scheduler.public import Actor
from scheduler.rules.durations import DurationError, parse_duration


class Command(BaseCommand):
    """Makes a token, tells about it on stderr, and prints it alone on the last line."""

    help = "Print an API token of USER, once. Programs call with it and have USER's rights."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("user", metavar="USER", help="user name of an active member of staff")
        parser.add_argument("--ttl", default="90d", help="how long it is good, at most 90d")
        parser.add_argument("--name", default="", help="what it is for")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Make and print the token."""
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f'there is no user "{options["user"]}"')
        try:
            row, text = make_api_token(
                user,
                ttl=parse_duration(options["ttl"]),
                name=options["name"],
                actor=Actor("command", getpass.getuser()),
                now=timezone.now(),
            )
        except DurationError as error:
            raise CommandError(f"--ttl: {error}") from None
        except Refusal as refusal:
            raise CommandError(refusal.message) from None
        self.stderr.write(f"For {user} until {row.expires_at:%Y-%m-%d %H:%M} UTC.")
        self.stdout.write(text)
