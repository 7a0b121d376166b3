"""An agent without rights whose script is a fork bomb: `python -m …` prints what became of both."""

import json
import os
import resource
import shutil
import tempfile
from pathlib import Path

from fleet.agent.gate import Gate
from fleet.agent.output import Output
from fleet.agent.runner import Attempt
from fleet.agent.workspace import workspace
from tests.fleet.agent.make import make_command, make_script
from tests.fleet.agent.until import until

# Nobody's: with it the limit counts this test's processes alone.
USER = 61_234
MOST_PROCESSES = 50
# Its first process forks nothing more, so that it is there until its timeout.
BOMB = "bomb() { bomb | bomb & }\nbomb\nwhile :; do :; done\n"


def run(script: str, shell: str, timeout_s: int) -> str:
    """Run a script as the agent does; return how it ended."""
    command = make_command(script=make_script(script, shell=shell, timeout_s=timeout_s))
    with workspace(command, 1) as place:
        attempt = Attempt(command, place, Output(command.script.max_output), Gate())
        return str(attempt.wait(grace_s=0.2).outcome)


def processes_left(*, dead_too: bool) -> int:
    """How many processes of the user there are besides this one."""
    found = 0
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and entry.stat().st_uid == USER:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                found += dead_too or state not in "ZX"
        except OSError:
            continue
    return found - 1


def main() -> None:
    """Give up all rights, run the bomb, then an honest script."""
    folder = tempfile.mkdtemp()
    os.chown(folder, USER, USER)
    tempfile.tempdir = os.environ["TMPDIR"] = os.environ["HOME"] = folder
    os.chdir("/")
    resource.setrlimit(resource.RLIMIT_NPROC, (MOST_PROCESSES, MOST_PROCESSES))
    os.setgroups([])
    os.setgid(USER)
    os.setuid(USER)
    bomb, left = run(BOMB, "bash", 1), processes_left(dead_too=False)
    # The dead count as processes until the system's first process has taken note of them.
    until(lambda: processes_left(dead_too=True) == 0, what="the dead to be buried")
    print(json.dumps({"bomb": bomb, "left": left, "next": run("true\n", "sh", 10)}))
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
