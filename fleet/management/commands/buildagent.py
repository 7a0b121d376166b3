"""`buildagent`: the agent as one file, the same bytes from the same sources."""

import ast
import hashlib
import importlib.metadata
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

ROOT = Path(__file__).resolve().parents[3]
ENTRY = "fleet.agent.cli"
OURS = ("fleet", "scheduler")
BUNDLED = ("croniter", "python-dateutil", "six", "tzdata")
SHEBANG = b"#!/usr/bin/env python3\n"
# No clock and no user's rights in the file: the earliest time that a zip can hold.
TIME = (1980, 1, 1, 0, 0, 0)
_MODE = 0o644 << 16
_NOT_NEEDED = (".pyc", ".pyi", ".so", ".tar.gz")
_MAIN = b"""import sys

if sys.version_info < (3, 11):
    sys.exit("kanade-agent needs Python 3.11 or later, this is " + sys.version.split()[0])

from fleet.agent.cli import main

sys.exit(main())
"""


class Command(BaseCommand):
    """Writes the file and says what it is."""

    help = "Build the agent as one file that runs with Python 3.11 or later and nothing else."
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django's own name; never changed

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--output", type=Path, default=ROOT / "dist" / "kanade-agent.pyz", help="the file"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Build the file."""
        path: Path = options["output"]
        data = build()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755)
        digest = hashlib.sha256(data).hexdigest()
        self.stdout.write(f"{path}: {len(data)} bytes, sha256 {digest}")


def build() -> bytes:
    """The bytes of the file."""
    members = {"__main__.py": _MAIN}
    for module in sorted(our_modules()):
        path = _path_of(module)
        members[str(path.relative_to(ROOT))] = path.read_bytes()
    for name in BUNDLED:
        members |= dict(_files_of(name))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, TIME)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, _MODE
            archive.writestr(info, members[name], compresslevel=9)
    return SHEBANG + packed.getvalue()


def our_modules() -> set[str]:
    """The modules of this repository that the agent imports, whatever imports them."""
    found: set[str] = set()
    waiting = [ENTRY]
    while waiting:
        module = waiting.pop()
        if module in found or not _path_of(module).exists():
            continue
        found.add(module)
        waiting += imports_of(module)
        # Importing a module imports the packages around it.
        waiting += [
            ".".join(module.split(".")[:depth]) for depth in range(1, module.count(".") + 1)
        ]
    return found


def imports_of(module: str) -> Iterator[str]:
    """The modules of this repository that a module's source names."""
    for node in ast.walk(ast.parse(_path_of(module).read_bytes())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] in OURS)


def _path_of(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _files_of(distribution: str) -> Iterator[tuple[str, bytes]]:
    """The files of an installed package that it runs with, and its licence."""
    for file in importlib.metadata.files(distribution) or ():
        name = file.as_posix()
        path = Path(str(file.locate()))
        if "__pycache__" in name or name.endswith(_NOT_NEEDED) or name.startswith(".."):
            continue
        if ".dist-info/" not in name:
            yield name, path.read_bytes()
        elif "LICENSE" in file.name:
            yield f"licences/{distribution}-{file.name}", path.read_bytes()
