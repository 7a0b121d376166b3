"""The source files of the tree, parsed."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("kanade", "scheduler", "fleet")


@cache
def sources() -> dict[str, ast.Module]:
    """Return every module of the three packages, migrations left out, by its path."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" in path.parts:
                continue
            found[str(path.relative_to(ROOT))] = ast.parse(path.read_text(encoding="utf-8"))
    return found
