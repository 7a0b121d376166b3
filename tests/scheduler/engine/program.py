"""A process of its own for tests: the real runner, with bodies that write to files.

`python program.py run …` is `manage.py runscheduler …`. `python program.py zombie` claims one task,
stops itself as SIGSTOP does, and finishes it when it is continued; with `unfenced` the finish does
not ask for the lease's token.
"""

import os
import signal
import sys
import threading
from pathlib import Path

import django

django.setup()

from django.core.management import call_command  # noqa: E402  # only after setup
from django.utils import timezone  # noqa: E402

from scheduler import public  # noqa: E402
from scheduler.engine import claim, finish, runners  # noqa: E402
from scheduler.models import ending as endings  # noqa: E402
from scheduler.rules.claims import Ending  # noqa: E402
from scheduler.rules.outcomes import Succeeded  # noqa: E402

FOLDER = Path(os.environ["PROGRAM_FOLDER"])
# Only ever reached by a test that fails.
PATIENCE = 60.0
POLL = 0.02


def note(name: str, line: str) -> None:
    """Append a line to a file in one write, so that processes do not mix theirs."""
    handle = os.open(FOLDER / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


@public.kind("note")
def note_down(fire: public.Fire) -> None:
    """Leave a line and end."""
    note("notes", str(fire.task_id))


@public.kind("hold")
def hold(fire: public.Fire) -> None:
    """Stay inside until a file says otherwise."""
    note("started", f"{fire.task_id} {os.getpid()}")
    never = threading.Event()
    for _ in range(int(PATIENCE / POLL)):
        if (FOLDER / "release").exists():
            break
        never.wait(POLL)
    note("ended", f"{fire.task_id} {os.getpid()}")


@public.kind("die")
def die(fire: public.Fire) -> None:
    """Take the whole process along."""
    note("died", str(os.getpid()))
    os.kill(os.getpid(), signal.SIGKILL)


def zombie(*, fenced: bool) -> None:
    """Finish a task long after it was taken away."""
    if not fenced:
        endings._RECORD = endings._RECORD.replace("AND t.lease_token = ended.token", "")
    runner = runners.sign_on("zombie", workers=1, queues=None)
    wish = claim.Wish(runner_id=runner.pk, limit=1, kinds=["note"])
    (held,) = claim.claim(wish, now=timezone.now())
    os.kill(os.getpid(), signal.SIGSTOP)
    ended = Ending(held, Succeeded("stale"), timezone.now())
    report = finish.finish([ended], runner_name="zombie", now=timezone.now())
    note("zombie", "refused" if report.lost else "accepted")


if __name__ == "__main__":
    if sys.argv[1] == "run":
        call_command("runscheduler", *sys.argv[2:])
    else:
        zombie(fenced="unfenced" not in sys.argv)
