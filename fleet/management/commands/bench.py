"""`bench NAME`: a benchmark, one line of JSON for each of its goals."""

import importlib
import json
import pkgutil
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

PACKAGES = ("fleet.management.benches", "scheduler.management.benches")


class Command(BaseCommand):
    """Finds the benchmark by the name of its module and runs it."""

    help = "Run a benchmark in a database made for it; exit 0 when all its goals are met."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("name", metavar="NAME", choices=sorted(benches()))

    def handle(self, *_args: Any, **options: Any) -> None:
        """Print the lines as they come; CommandError when a goal is missed."""
        bench: Any = importlib.import_module(benches()[options["name"]])
        if not bench.run(write=self._write):
            raise CommandError("a goal is missed")

    def _write(self, line: dict[str, object]) -> None:
        self.stdout.write(json.dumps(line))
        self.stdout.flush()


def benches() -> dict[str, str]:
    """Return the modules that are benchmarks by name: those that can be run."""
    found = {}
    for package in PACKAGES:
        folder = importlib.import_module(package)
        for module in pkgutil.iter_modules(folder.__path__):
            path = f"{package}.{module.name}"
            if hasattr(importlib.import_module(path), "run"):
                found[module.name] = path
    return found
