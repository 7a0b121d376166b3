"""A whole Kanade in a folder of its own: web, runners and agents as real processes."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.journey import databases

ROOT = Path(__file__).resolve().parent.parent.parent
PASSWORD = "correct-horse-battery"
T = TypeVar("T")


def until(
    ask: Callable[[], T | None], *, within_s: float, what: str, log: Callable[[], str] = str
) -> T:
    """Return the first true answer of `ask`; fail with the end of `log` when none came in time."""
    last = time.monotonic() + within_s
    pause = threading.Event()
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() > last:
            raise AssertionError(f"within {within_s} s: {what}\n{log()[-4000:]}")
        pause.wait(0.1)


def free_port() -> int:
    """Return a port of the loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Site:
    """One installation. `stop()` ends every process that it started."""

    folder: Path
    port: int = field(default_factory=free_port)
    database: str = ""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        kept = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR") if key in os.environ}
        return kept | {
            "DJANGO_SETTINGS_MODULE": "kanade.settings",
            "PYTHONPATH": str(ROOT),
            "KANADE_ENV_FILE": "",
            "KANADE_LOCAL": "1",
            "KANADE_BASE_URL": self.url,
            "KANADE_DB_POOL": "10",
            "SECRET_KEY": "journey-0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFGH",
            "KANADE_TOKEN_PEPPER": "pepper-0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFGH",
            "DATABASE_URL": self.database,
            **self.extra,
        }

    def prepare(self) -> None:
        """Make the database, the tables, the static files and the login `admin`.

        All sites of a run copy the first one: migrating takes longer than most tests.
        """
        shared = os.environ.get("TEST_FOLDER")
        if shared is None:
            self.database = databases.make(self.folder, "site")
            self._fill()
            return
        with databases.locked(Path(shared) / "journey.lock"):
            template = Path(shared) / "journey.template"
            if not template.exists():
                self.database = databases.make(Path(shared), "template")
                self._fill()
                template.write_text(self.database)
            self.database = databases.copy(template.read_text(), self.folder)

    def _fill(self) -> None:
        self.manage("migrate", "--verbosity", "0")
        self.manage("collectstatic", "--noinput", "--verbosity", "0")
        self.manage(
            "createsuperuser", "--noinput", "--username", "admin", "--email", "admin@example.org",
            DJANGO_SUPERUSER_PASSWORD=PASSWORD,
        )  # fmt: skip

    def manage(self, *arguments: str, check: bool = True, **more: str) -> str:
        """Run a management command; return what it printed."""
        done = subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), *arguments],
            env=self.environment | more,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout + ("" if check else done.stderr)

    def start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        """Start a process in a group of its own; its log is in the folder."""
        log = (self.folder / f"{name}.log").open("ab")
        process = subprocess.Popen(
            [sys.executable, *command],
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        log.close()
        self.processes.append(process)
        return process

    def start_web(self) -> subprocess.Popen[bytes]:
        """Start the site and wait until it answers."""
        web = self.start(
            "web", "-m", "uvicorn", "kanade.asgi:application", "--host", "127.0.0.1",
            "--port", str(self.port), "--log-level", "warning",
        )  # fmt: skip
        until(
            lambda: self.status("/healthz") == 200,
            within_s=40,
            what="the site answers",
            log=lambda: self.log("web"),
        )
        return web

    def start_runner(self, name: str = "runner") -> subprocess.Popen[bytes]:
        """Start a runner."""
        return self.start(name, str(ROOT / "manage.py"), "runscheduler", "--name", name)

    def start_agent(self, name: str, *, group: str = "") -> subprocess.Popen[bytes]:
        """Enrol and start an agent of that name."""
        state = self.folder / f"agent-{name}"
        command = ["-m", "fleet.agent", "--server", self.url, "--state-dir", str(state)]
        if not state.exists():
            options = ("--group", group) if group else ()
            token = self.manage("enroltoken", *options).strip().splitlines()[-1]
            command += ["--enrol", token, "--name", name]
        return self.start(f"agent-{name}", *command)

    def log(self, name: str) -> str:
        """Return the end of a process's log."""
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace")[-4000:] if path.exists() else "no log"

    def status(self, path: str) -> int:
        """Return the status of a GET without credentials, 0 when nobody answers."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def token(self) -> str:
        """Return a fresh API token of the admin."""
        return self.manage("apitoken", "admin").strip().splitlines()[-1]

    def api(self, token: str, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Call the API; return the status and the parsed body."""
        request = urllib.request.Request(
            f"{self.url}/api/v1/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                status, data = int(answer.status), answer.read()
        except urllib.error.HTTPError as error:
            status, data = error.code, error.read()
        try:
            return status, json.loads(data)
        except ValueError:
            return status, data.decode(errors="replace")

    def stop(self) -> None:
        """End every process that was started, the last one first; drop the database."""
        for process in reversed(self.processes):
            if process.poll() is None:
                process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(35)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(10)
        if self.database.startswith("postgres"):
            databases.drop(self.database)
