"""Run a management command and keep what it says."""

from dataclasses import dataclass
from io import StringIO

from django.core.management import call_command
from django.core.management.base import CommandError


@dataclass(frozen=True, slots=True)
class Said:
    """The lines of both streams, and why the command failed, if it did."""

    out: list[str]
    err: list[str]
    failure: str | None


def run(*arguments: str) -> Said:
    """Run the command as the command line does, without a process of its own."""
    out, err, failure = StringIO(), StringIO(), None
    try:
        call_command(*arguments, stdout=out, stderr=err)
    except CommandError as error:
        failure = str(error)
    return Said(out.getvalue().splitlines(), err.getvalue().splitlines(), failure)
