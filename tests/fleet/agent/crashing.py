"""An agent that dies by SIGKILL at a named point of its work: `python -m … FOLDER URL POINT`.

Without arguments it serves: for each line `FOLDER URL POINT` it forks one agent and answers with
its exit status. A fork of what is loaded already takes a tenth of the time of a new Python.
"""

import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fleet.agent import exchange, identity
from fleet.agent.address import read_address
from fleet.agent.identity import IdentityFile
from fleet.agent.journal import Journal
from fleet.agent.loop import Agent, Connections
from fleet.agent.outbox import Outbox
from fleet.agent.runner import Attempt
from fleet.agent.transport import Transport

Owner = Any

BEFORE: dict[str, tuple[Owner, str]] = {
    "fetch.received": (exchange, "examine"),
    "journal.started before": (Journal, "started"),
    "exec before": (Attempt, "__init__"),
    "outbox.put before": (Outbox, "put"),
    "journal.result before": (Journal, "finished"),
    "post.acked": (Outbox, "settle"),
    "rotate before": (IdentityFile, "adopt"),
}
AFTER: dict[str, tuple[Owner, str]] = {
    "seq.saved": (IdentityFile, "next_seq"),
    "post.sent": (Transport, "request"),
    "journal.received": (Journal, "received"),
    "journal.started": (Journal, "started"),
    "exec.spawned": (Attempt, "__init__"),
    "exec.exited": (Attempt, "wait"),
    "attempt.ended": (Journal, "attempt_ended"),
    "outbox.put": (Outbox, "put"),
    "journal.result": (Journal, "finished"),
    "outbox.deleted": (Outbox, "settle"),
    "rotate.saved": (IdentityFile, "adopt"),
}
POINTS = [*BEFORE, *AFTER]


def die() -> None:
    """End this process as the kernel would: nothing is tidied up."""
    os.kill(os.getpid(), signal.SIGKILL)


def arm(point: str) -> None:
    """Make the process die when it comes to `point`."""
    owner, name = BEFORE.get(point) or AFTER[point]
    real: Callable[..., Any] = getattr(owner, name)

    def armed(*args: Any, **kwargs: Any) -> Any:
        if point in BEFORE:
            die()
        found = real(*args, **kwargs)
        die()
        return found

    setattr(owner, name, armed)


def main(folder: Path, url: str, point: str) -> None:
    """Work once, with the point armed unless it is empty."""
    known = identity.load(folder)
    assert known is not None
    ways = Connections(Transport(read_address(url)), Transport(read_address(url)))
    agent = Agent(folder, known, ways, slots=4)
    if point:
        arm(point)
    agent.run_once()


def serve() -> None:
    """Fork an agent for each line; this process has one thread, so that a fork is whole."""
    for line in sys.stdin:
        folder, url, point = line.rstrip("\n").split("\t")
        child = os.fork()
        if child == 0:
            _be(Path(folder), url, point)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _be(folder: Path, url: str, point: str) -> None:
    """Be an agent, and end."""
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder / "tmp")
    code = 1
    try:
        main(folder, url, point)
        code = 0
    finally:
        if code:
            traceback.print_exc()
        os._exit(code)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
    else:
        serve()
