"""`manage.py runscheduler`: the production runner."""

import os
import signal
import socket
import threading
import time
from argparse import ArgumentParser
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from django.utils import timezone

from scheduler import conf
from scheduler.engine import runners, startup
from scheduler.engine.dispatch import Dispatching, Outbox
from scheduler.engine.loop import Clocks, Loop
from scheduler.engine.wakeup import Listener

WORKERS = 4
MOST_WORKERS = 256
# After a second signal the process is gone within this many seconds, whatever the database does.
LAST_WORDS = 3.0


class Command(BaseCommand):
    """Take due tasks and run them, until told to stop."""

    help = (
        "Run due tasks. Several runners may work at once. SIGTERM or Ctrl-C: take nothing more, "
        "let running bodies end for 25 s, give back the rest; a second one ends at once."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--workers", type=int, default=WORKERS, help="threads for bodies")
        parser.add_argument(
            "--once", action="store_true", help="run everything that is due now, then exit"
        )
        parser.add_argument(
            "--until-idle", action="store_true", help="exit when nothing is due and nothing runs"
        )
        parser.add_argument("--name", default="", help="how health and history call this runner")
        parser.add_argument("--queues", default="", help="take only these, separated by commas")

    def handle(self, *args: object, **options: Any) -> None:  # noqa: ARG002
        """Run the loop in a thread, so that signals find this one free."""
        loop = self._loop(options)
        listener = Listener()
        asked = Signals()
        worker = threading.Thread(
            target=_work, args=(loop, options["once"] or options["until_idle"]), name="loop"
        )
        worker.daemon = True
        listener.start()
        worker.start()
        _watch(worker, loop, asked)
        listener.stop()
        asked.restore()
        if loop.hand.claims:
            # Bodies that did not end in time end with the process.
            os._exit(0)

    def _loop(self, options: dict[str, Any]) -> Loop:
        workers = options["workers"]
        if not 1 <= workers <= MOST_WORKERS:
            raise CommandError(f"--workers is between 1 and {MOST_WORKERS}, not {workers}")
        queues = tuple(name.strip() for name in options["queues"].split(",") if name.strip())
        now = timezone.now()
        startup.set_aside_unusable(now=now)
        startup.register_declared(now=now)
        name = options["name"] or f"{socket.gethostname()}-{os.getpid()}"
        runner = runners.sign_on(name, workers=workers, queues=queues or None)
        self.stdout.write(f"Runner {name} takes tasks with {workers} threads.")
        loop = Loop(
            runner,
            Clocks(timezone.now, time.monotonic),
            workers=workers,
            queues=queues or None,
            # What the registration made due belongs to this pass.
            cutoff=timezone.now() if options["once"] else None,
        )
        # A pass that ends runs all it finds itself.
        if conf.workers_are_celerys() and not (options["once"] or options["until_idle"]):
            outbox = Outbox(conf.broker())
            loop.intake = Dispatching(loop.hand, queues or None, outbox=outbox)
        return loop


class Signals:
    """Counts SIGTERM and SIGINT; the handler does nothing else, for it may come at any point."""

    def __init__(self) -> None:
        """Count from now on, if this is the main thread."""
        self.count = 0
        self._before: dict[signal.Signals, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for one in (signal.SIGTERM, signal.SIGINT):
                self._before[one] = signal.signal(one, self._note)

    def restore(self) -> None:
        """Give the signals back."""
        for one, handler in self._before.items():
            signal.signal(one, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.count += 1


def _work(loop: Loop, until_idle: bool) -> None:
    try:
        loop.run(until_idle=until_idle)
    finally:
        connections.close_all()


def _watch(worker: threading.Thread, loop: Loop, asked: Signals) -> None:
    """Wait for the loop; pass signals on to it, and after the second wait no longer than needed."""
    heard = 0
    gone_by = float("inf")
    while worker.is_alive():
        worker.join(timeout=0.1)
        while heard < asked.count:
            heard += 1
            loop.stop()
            if heard > 1:
                gone_by = min(gone_by, time.monotonic() + LAST_WORDS)
        if time.monotonic() > gone_by:
            os._exit(0)
