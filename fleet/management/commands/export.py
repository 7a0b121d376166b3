"""`export`: the stored manifests as YAML that `apply` takes back."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from fleet.operations.exporting import export_documents
from fleet.rules.document_writer import dump_yaml
from fleet.rules.manifest import Kind
from fleet.rules.refusals import Refusal

_KINDS = {
    "jobs": Kind.JOB,
    "schedules": Kind.SCHEDULE,
    "groups": Kind.GROUP,
    "freeze": Kind.FREEZE,
}


class Command(BaseCommand):
    """Prints YAML, a document for each row."""

    help = (
        "Print jobs, schedules, groups and the freeze as YAML that `apply` takes back without a "
        "difference. Without a kind: everything, the freeze only while one is set."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("kind", nargs="?", choices=list(_KINDS), help="what to export")
        parser.add_argument("id", nargs="*", metavar="ID", help="these alone")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Print the documents."""
        kind = _KINDS.get(options["kind"])
        if kind is Kind.FREEZE and options["id"]:
            raise CommandError("there is one freeze, without an id")
        try:
            documents = list(export_documents(kind, options["id"]))
        except Refusal as refusal:
            raise CommandError(refusal.message) from None
        self.stdout.write(dump_yaml(documents), ending="")
