"""A real server process on loopback, and the plainest client for thousands of connections."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import connection

HOST = "127.0.0.1"
SECONDS_TO_START = 60


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers."""

    port: int
    process: "subprocess.Popen[bytes]"

    def threads(self) -> int:
        """How many threads the process has."""
        return int(self._status("Threads"))

    def resident_mib(self) -> int:
        """How much memory it holds, in MiB."""
        return int(self._status("VmRSS").split()[0]) // 1024

    def _status(self, name: str) -> str:
        lines = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith(name))


@contextmanager
def web_server() -> Iterator[Server]:
    """Serve the site on the database of this moment, as `make run` does."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "uvicorn", "kanade.asgi:application", "--host", HOST]
    command += ["--port", str(port), "--log-level", "error", "--timeout-graceful-shutdown", "1"]
    process = subprocess.Popen(  # noqa: S603  # this program itself
        command, env=_environment(), stderr=subprocess.DEVNULL
    )
    try:
        asyncio.run(_answers(port))
        yield Server(port, process)
    finally:
        process.terminate()
        process.wait(30)


def _environment() -> dict[str, str]:
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": "kanade.settings",
        "KANADE_ENV_FILE": "",
        "KANADE_LOCAL": "1",
        "ALLOWED_HOSTS": HOST,
        "DEBUG": str(settings.DEBUG),
        "LOG_LEVEL": "ERROR",
        "SECRET_KEY": settings.SECRET_KEY,
        "KANADE_TOKEN_PEPPER": settings.KANADE_TOKEN_PEPPER,
        "DATABASE_URL": _database_url(),
    }


def _database_url() -> str:
    found = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{found['NAME']}"
    who = f"{found['USER']}:{found['PASSWORD']}" if found["PASSWORD"] else found["USER"]
    return f"postgres://{who}@{found['HOST']}:{found['PORT'] or 5432}/{found['NAME']}"


async def _answers(port: int) -> None:
    async with asyncio.timeout(SECONDS_TO_START):
        while True:
            try:
                await ask(port, "GET", "/healthz")
            except OSError:
                await asyncio.sleep(0.1)
            else:
                return


async def ask(
    port: int, method: str, path: str, *, body: bytes = b"", token: str = ""
) -> tuple[int, bytes]:
    """Return status and body of one request on a connection of its own."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {HOST}", "Connection: close"]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await writer.drain()
        answer = await reader.read()
    finally:
        writer.close()
    head, _, rest = answer.partition(b"\r\n\r\n")
    status = head.split(b" ", 2)[1:2]
    return (int(status[0]) if status else 0), rest
