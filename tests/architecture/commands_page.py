"""The page of the commands, from their own help (`python -m tests.architecture.commands_page`)."""

import argparse
import os
from pathlib import Path

import django
from django.core.management import get_commands, load_command_class

from tests.architecture.tree import ROOT

PAGE = ROOT / "docs/reference/commands.md"
OURS = ("fleet", "scheduler")
HEAD = """# Commands

`python manage.py COMMAND`; what each prints for `--help`. Options that every command of Django has
are left out.
"""
OF_DJANGO = {
    "--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color",
    "--force-color", "--skip-checks",
}  # fmt: skip


def page() -> str:
    """Return the page as it should be."""
    os.environ["COLUMNS"] = "100"
    names = sorted(name for name, app in get_commands().items() if app in OURS)
    return HEAD + "".join(f"\n## {name}\n\n```\n{_help(name)}\n```\n" for name in names)


def _help(name: str) -> str:
    app = get_commands()[name]
    assert isinstance(app, str)
    parser = load_command_class(app, name).create_parser("manage.py", name)
    for action in list(parser._actions):
        if OF_DJANGO & set(action.option_strings):
            action.help = argparse.SUPPRESS
    return "\n".join(line.rstrip() for line in parser.format_help().strip().splitlines())


def main() -> None:
    """Write the page."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    Path(PAGE).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
