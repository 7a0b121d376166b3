"""`make run` on a copy of the tree: a demo result, a second start, and nothing left running."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journey.site import ROOT, free_port, until

pytestmark = [pytest.mark.concurrency]

# The database is SQLite whatever the suite runs on: what a newcomer gets.
only_once = pytest.mark.skipif(
    os.environ.get("TEST_DATABASE") == "postgres",
    reason="make run uses SQLite; it ran with the SQLite half of the suite",
)


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Path]:
    """A copy of the tree without what a run leaves behind; the environment is shared."""
    tree = tmp_path / "kanade"
    shutil.copytree(
        ROOT,
        tree,
        ignore=shutil.ignore_patterns(
            ".git", ".venv", ".run", ".env", "*.sqlite3*", "staticfiles", "dist", ".*_cache"
        ),
    )
    yield tree
    # A failed test must not leave programs behind.
    for pid in processes_of(tree):
        os.kill(pid, signal.SIGKILL)


def processes_of(tree: Path) -> list[int]:
    """Return the processes whose working folder is the tree."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            inside = Path(os.readlink(path / "cwd")).is_relative_to(tree)
        except OSError:
            continue
        if inside:
            found.append(int(path.name))
    return found


def start(tree: Path, port: int, log: Path) -> subprocess.Popen[bytes]:
    environment = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    with log.open("ab") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "kanade.local"],
            cwd=tree,
            env=environment | {"PORT": str(port), "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )


def outcomes(tree: Path) -> str:
    """Return the outputs that the demo's database holds."""
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c",
         ("from fleet.models import Output; "
         "print(*[bytes(row.head).decode() for row in Output.objects.all()])")],
        cwd=tree, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


@only_once
def test_the_demo_runs_on_the_local_agent_and_ctrl_c_leaves_no_process(
    copy: Path, tmp_path: Path
) -> None:
    port, log = free_port(), tmp_path / "log"
    running = start(copy, port, log)
    until(
        lambda: "Log in as admin" in log.read_text(),
        within_s=60,
        what="the login is told",
        log=log.read_text,
    )

    until(
        lambda: "Hello from" in outcomes(copy),
        within_s=90,
        what="a result",
        log=lambda: log.read_text() + outcomes(copy),
    )
    os.killpg(running.pid, signal.SIGINT)
    running.wait(45)
    until(lambda: not processes_of(copy), within_s=5, what=f"left: {processes_of(copy)}")

    assert re.search(r"with the password \S{20} ", log.read_text())
    assert (copy / ".env").stat().st_mode & 0o777 == 0o600

    again = tmp_path / "again"
    running = start(copy, port, again)
    until(
        lambda: "Log in as admin" in again.read_text(),
        within_s=60,
        what="the login is told",
        log=again.read_text,
    )
    os.killpg(running.pid, signal.SIGINT)
    running.wait(45)
    assert "with the password" not in again.read_text()
    assert not processes_of(copy)
