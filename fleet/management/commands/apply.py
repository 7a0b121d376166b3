"""`apply`: create or update jobs, schedules, groups and the freeze from files."""

import json
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from fleet.management.files import NoFilesError, files_of, read_file
from fleet.operations.applying import apply_documents
from fleet.rules.apply_plan import Action, Plan, Step
from fleet.rules.refusals import Refusal
from scheduler.management.acting import command_actor

_SHOWN = 80


class Command(BaseCommand):
    """Prints a plan, one line a document, and what is wrong with file and line."""

    help = (
        "Create or update jobs, schedules, groups and the freeze from YAML or JSON files. "
        "Exit status 1 when any document is bad; the good ones are applied all the same."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("path", nargs="+", metavar="PATH", help="file, folder or glob")
        parser.add_argument(
            "--dry-run", action="store_true", help="print the plan and change nothing"
        )
        parser.add_argument(
            "--atomic", action="store_true", help="apply nothing when any document is bad"
        )
        parser.add_argument("--set", default="", metavar="NAME", help="the set they belong to")
        parser.add_argument(
            "--prune",
            action="store_true",
            help="delete what an earlier apply of the set made and is no longer there",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Read the files, apply them, report."""
        try:
            files = files_of(options["path"])
            plan = apply_documents(
                [given for file in files for given in read_file(file)],
                actor=command_actor(),
                now=timezone.now(),
                dry_run=options["dry_run"],
                atomic=options["atomic"],
                set_name=options["set"],
                prune=options["prune"],
            )
        except (NoFilesError, Refusal) as error:
            raise CommandError(str(error)) from None
        self._report(plan)

    def _report(self, plan: Plan) -> None:
        for step in plan.steps:
            for line in _lines(step):
                self.stdout.write(line)
            for problem in (*step.problems, *step.warnings):
                self.stderr.write(str(problem))
        if plan.not_pruned:
            self.stderr.write(f"nothing was pruned: {plan.not_pruned}")
        self.stdout.write(_summary(plan))
        if plan.bad:
            raise CommandError(f"{len(plan.bad)} of {len(plan.steps)} documents are bad")


def _lines(step: Step) -> Iterator[str]:
    yield f"{step.action.value:<9} {step.name or step.source}"
    for change in step.changes:
        yield f"{'':<9} {change.path}: {_value(change.before)} -> {_value(change.after)}"


def _value(value: object) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _summary(plan: Plan) -> str:
    counts = ", ".join(f"{plan.count(action)} {action.value}" for action in Action)
    return counts if plan.is_applied else f"{counts}; nothing was changed"
