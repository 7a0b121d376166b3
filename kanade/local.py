"""What `make run` does: everything on this machine, set up once and started together.

`python -m kanade.local` makes secrets, a database, a demo, an admin login and a local agent where
they are missing, then runs the site, the runner and the agent until Ctrl-C.
"""

import multiprocessing
import os
import secrets
import shlex
import shutil
import socket
import sys
import threading
from io import StringIO
from pathlib import Path

import django
import honcho.manager
from django.core.management import call_command

BASE = Path(__file__).resolve().parent.parent
STATE = BASE / ".run"
AGENT_STATE = STATE / "agent"
ADMIN = "admin"
HOST = "127.0.0.1"
# The runner lets bodies end for up to 25 s, the agent its scripts for 10 s.
honcho.manager.KILL_WAIT = 30


class Together(honcho.manager.Manager):  # type: ignore[misc]  # honcho has no types
    """The three programs; a Ctrl-C while they are being started waits until all of them are."""

    def terminate(self) -> None:
        """Stop every program, once each has a process that can be stopped."""
        if multiprocessing.parent_process() is not None:
            return  # a fork that is about to become a program still has this handler
        if all("pid" in program for program in self._processes.values()):
            super().terminate()
        else:
            threading.Timer(0.1, self.terminate).start()


def main() -> int:
    """Set up what is missing, run until Ctrl-C, return the exit code."""
    port = int(os.environ.get("PORT", "8000"))
    if _taken(port):
        sys.stderr.write(f"Port {port} is taken. Choose another one: PORT={port + 1} make run\n")
        return 1
    _write_secrets()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kanade.settings")
    os.environ["KANADE_BASE_URL"] = f"http://{HOST}:{port}"
    os.chdir(BASE)
    django.setup()
    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    password = _make_admin()
    if password:
        # A new database: an agent that another one enrolled is a stranger here.
        shutil.rmtree(AGENT_STATE, ignore_errors=True)
        call_command("apply", str(BASE / "kanade" / "demo"), stdout=StringIO())
    return _serve(port, password)


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return True
    return False


def _write_secrets() -> None:
    """Write `.env` with fresh secrets, readable by its owner alone, unless it is there."""
    path = BASE / ".env"
    if path.exists():
        return
    lines = [
        "# Made by `make run` for this machine alone. Keep it secret, keep it with the database.",
        "KANADE_LOCAL=1",
        f"SECRET_KEY={secrets.token_urlsafe(64)}",
        f"KANADE_TOKEN_PEPPER={secrets.token_urlsafe(64)}",
    ]
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write("\n".join(lines) + "\n")


def _make_admin() -> str | None:
    """Make the first login; return its password, or None when there is one already."""
    # Models can be imported only after django.setup().
    from django.contrib.auth.models import User  # noqa: PLC0415

    if User.objects.filter(is_superuser=True).exists():
        return None
    password = secrets.token_urlsafe(15)
    User.objects.create_superuser(ADMIN, password=password)
    return password


def _agent_command(port: int) -> list[str]:
    command = [sys.executable, "-m", "fleet.agent", "--server", f"http://{HOST}:{port}"]
    command += ["--state-dir", str(AGENT_STATE)]
    if not AGENT_STATE.exists() or not any(AGENT_STATE.iterdir()):
        told = StringIO()
        call_command("enroltoken", group="demo", stdout=told, stderr=StringIO())
        command += ["--enrol", told.getvalue().strip().splitlines()[-1]]
    return command


def _serve(port: int, password: str | None) -> int:
    """Run the three programs until one ends or Ctrl-C."""
    web = [sys.executable, "-m", "uvicorn", "kanade.asgi:application"]
    web += ["--host", HOST, "--port", str(port), "--log-level", "warning"]
    # Agents that wait are not waited for.
    web += ["--timeout-graceful-shutdown", "5"]
    commands = {
        "web": web,
        "runner": [sys.executable, "manage.py", "runscheduler"],
        "agent": _agent_command(port),
    }
    manager = Together()
    for name, command in commands.items():
        # `exec`: the signal reaches the program, and no shell ends before it.
        line = f"exec {shlex.join(command)}"
        manager.add_process(name, line, env=dict(os.environ), cwd=str(BASE))
    _tell(port, password)
    manager.loop()
    return int(manager.returncode or 0)


def _tell(port: int, password: str | None) -> None:
    lines = ["", f"  Kanade: http://{HOST}:{port}/"]
    if password:
        lines.append(f"  Log in as {ADMIN} with the password {password} (shown this once)")
    else:
        lines.append(
            f"  Log in as {ADMIN}; lost password: {sys.executable} manage.py changepassword {ADMIN}"
        )
    lines += ["  Ctrl-C stops the site, the runner and the agent.", ""]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)  # Ctrl-C while it was being set up: nothing has been started yet
