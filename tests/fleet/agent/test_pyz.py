"""The agent as one file: the same bytes each time, and running where there is only Python."""

import io
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fleet.management.commands import buildagent
from tests.fleet.agent.make import command_id, make_command, make_script
from tests.fleet.agent.server import FakeServer
from tests.fleet.agent.until import until

pytestmark = pytest.mark.concurrency

VERSIONS = ("3.11", "3.12", "3.13")


def interpreter(version: str) -> str | None:
    """A Python of that version: pyenv's or the system's, none from this test's own environment."""
    roots = [Path(os.environ.get("PYENV_ROOT", "/root/.pyenv")) / "versions"]
    found = sorted(path for root in roots for path in root.glob(f"{version}.*/bin/python3"))
    named = shutil.which(f"python{version}")
    candidates = [*map(str, found), *([named] if named else [])]
    return next((path for path in candidates if _is(path, version)), None)


def _is(path: str, version: str) -> bool:
    told = subprocess.run([path, "-V"], capture_output=True, text=True, check=False)
    return told.stdout.startswith(f"Python {version}.")


@pytest.fixture(scope="module")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dist") / "kanade-agent.pyz"
    path.write_bytes(buildagent.build())
    return path


@pytest.fixture
def server() -> Iterator[FakeServer]:
    made = FakeServer()
    made.now = lambda: datetime.now(UTC)
    yield made
    made.close()


def test_the_same_sources_give_the_same_bytes(pyz: Path) -> None:
    assert buildagent.build() == pyz.read_bytes()


def test_the_file_holds_what_the_agent_imports_and_nothing_of_the_server(pyz: Path) -> None:
    names = zipfile.ZipFile(pyz).namelist()
    ours = {name for name in names if name.startswith(("fleet/", "scheduler/"))}
    allowed = ("fleet/agent/", "fleet/rules/", "scheduler/rules/")
    packages = {"fleet/__init__.py", "scheduler/__init__.py"}
    assert {name for name in ours - packages if not name.startswith(allowed)} == set()
    assert {"fleet/agent/cli.py", "scheduler/rules/strict_json.py"} <= ours
    assert {"six.py", "croniter/__init__.py", "dateutil/tz/__init__.py", "tzdata/zones"} <= {*names}
    assert len([name for name in names if name.startswith("licences/")]) >= 4


def test_no_module_in_the_file_needs_more_than_python_and_what_is_in_it(pyz: Path) -> None:
    archive = zipfile.ZipFile(pyz)
    inside = {name.split("/")[0].removesuffix(".py") for name in archive.namelist()}
    named = set()
    for name in archive.namelist():
        if name.startswith(("fleet/", "scheduler/")):
            source = archive.read(name).decode()
            named |= set(re.findall(r"^(?:from|import) (\w+)", source, re.MULTILINE))
    assert named - inside - sys.stdlib_module_names == set()


def run(python: str, pyz: Path, *options: str, path: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(path), "HOME": str(path), "LANG": "C.UTF-8"}
    return subprocess.run(
        [python, "-I", "-S", str(pyz), *options],
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_the_file_enrols_runs_and_reports_with_python_alone(
    tmp_path: Path, pyz: Path, server: FakeServer, version: str
) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"this machine has no Python {version}")
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "sh").symlink_to(str(shutil.which("sh")))
    now = datetime.now(UTC)
    times = {"issued_at": now, "deadline_at": now + timedelta(hours=1)}
    shell = make_script("echo from sh\n")
    own = make_script("import sys; print(sys.version_info[:2])\n", shell="python")
    lacking = make_script("true\n", shell="bash")
    for number, script in enumerate((shell, own, lacking), start=1):
        server.give(make_command(number, script=script, **times))
    options = ["--server", server.url, "--enrol", "ken1_t", "--state-dir", str(tmp_path / "s")]
    done = run(python, pyz, *options, "--once", path=tools)
    assert done.returncode == 0, done.stderr
    outcomes = [server.results[command_id(n)]["outcome"] for n in (1, 2, 3)]
    assert outcomes == ["succeeded", "succeeded", "refused"]
    check = run(python, pyz, "--check", "--state-dir", str(tmp_path / "s"), path=tools)
    assert (check.returncode, "BAD" in check.stdout) == (0, False)
    assert "shells: sh, python\n" in check.stdout


def of_version(pyz: Path, version: str) -> bytes:
    """The same agent as another version, its files at other places of the archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(pyz) as old, zipfile.ZipFile(out, "w") as new:
        for name in reversed(old.namelist()):
            data = old.read(name)
            if name == "fleet/agent/facts.py":
                data = data.replace(
                    b'AGENT_VERSION = "0.1.0"', f'AGENT_VERSION = "{version}"'.encode()
                )
            new.writestr(name, data)
    return out.getvalue()


def test_a_job_replaces_the_agents_file_is_answered_for_and_the_next_start_is_the_new_one(
    tmp_path: Path, pyz: Path, server: FakeServer
) -> None:
    mine, fresh, folder = tmp_path / "agent.pyz", tmp_path / "agent.new", tmp_path / "s"
    shutil.copy(pyz, mine)
    fresh.write_bytes(of_version(pyz, "0.2.0"))
    now = datetime.now(UTC)
    times: dict[str, Any] = {"issued_at": now, "deadline_at": now + timedelta(hours=1)}
    server.give(make_command(1, script=make_script(f"mv {fresh} {mine}\n"), **times))
    options = ["--server", server.url, "--enrol", "ken1_t", "--state-dir", str(folder)]
    agent = subprocess.Popen([sys.executable, "-I", "-S", str(mine), *options], cwd="/")
    until(lambda: command_id(1) in server.results, what="the result of the upgrade")
    agent.terminate()
    assert agent.wait(30) == 0

    server.give(make_command(2, **times))
    done = run(sys.executable, mine, "--once", "--state-dir", str(folder), path=Path("/bin"))

    assert done.returncode == 0, done.stderr
    outcomes = [server.results[command_id(number)]["outcome"] for number in (1, 2)]
    assert outcomes == ["succeeded", "succeeded"]
    told = [body["facts"]["agent_version"] for body in server.exchanges if "facts" in body]
    assert (told[0], told[-1]) == ("0.1.0", "0.2.0")


def test_an_old_python_is_told_what_is_needed(pyz: Path, tmp_path: Path) -> None:
    python = interpreter("3.8")
    if python is None:
        pytest.skip("this machine has no Python 3.8")
    done = run(python, pyz, "--version", path=tmp_path)
    assert done.returncode == 1
    assert "kanade-agent needs Python 3.11 or later, this is 3.8" in done.stderr
