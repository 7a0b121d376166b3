"""`python -m fleet.agent`: enrol, run, run once, or check."""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fleet.agent import checkup, enrolment, facts, identity, state
from fleet.agent.address import AddressError, read_address
from fleet.agent.identity import Identity
from fleet.agent.loop import Agent, Connections
from fleet.agent.pace import Pace
from fleet.agent.stopping import Stopper
from fleet.agent.transport import Transport, UnreachableError

logger = logging.getLogger(__name__)

DONE, REFUSED, BAD_SETUP, UNREACHABLE = 0, 1, 2, 3


class NotEnrolledError(Exception):
    """The folder has no identity, and something that enrolment needs is missing."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the agent; return the exit code."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    codes = {enrolment.RefusedError: REFUSED, UnreachableError: UNREACHABLE}
    try:
        return _run(options)
    except (
        AddressError,
        state.StateError,
        NotEnrolledError,
        enrolment.RefusedError,
        UnreachableError,
    ) as error:
        sys.stderr.write(f"kanade-agent: {error}\n")
        return codes.get(type(error), BAD_SETUP)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kanade-agent",
        description="Runs on a PC: takes signed commands from one Kanade server, reports results.",
        epilog="A proxy is taken from https_proxy and no_proxy. Exit codes: 0 done, 1 the server "
        "refuses this PC, 2 a wrong setup, 3 the server cannot be reached.",
    )
    option = parser.add_argument
    option("--server", metavar="URL", help="https://kanade.example.org; kept after enrolment")
    option("--enrol", metavar="TOKEN", help="the enrolment token, the first time")
    option("--state-dir", metavar="DIR", type=Path, required=True, help="the agent's own folder")
    option("--name", metavar="PC", help="what this PC is called (default: the host's name)")
    option("--ca", metavar="FILE", type=Path, help="trust these certificate authorities alone")
    option("--slots", metavar="N", type=int, default=0, help="scripts at once (default: CPUs)")
    option("--once", action="store_true", help="exchange, run what came, report, exit")
    option("--check", action="store_true", help="say whether this PC is set up well, exit")
    option("--version", action="version", version=facts.AGENT_VERSION)
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.check:
        folder, token = options.state_dir, options.enrol
        good = checkup.check(folder, url=options.server, ca=options.ca, token=token)
        return int(not good)
    folder = state.open_folder(options.state_dir)
    with state.lock_folder(folder):
        known = identity.load(folder)
        connections = _connect(options, known)
        stopper = Stopper()
        found = _settle_identity(folder, known, options, connections.exchange, stopper)
        if found is None:
            return DONE
        slots = options.slots if options.slots > 0 else os.cpu_count() or 1
        agent = Agent(folder, found, connections, slots=slots)
        stopper.pass_on_to(agent.stop)
        return _work(agent, once=options.once)


def _connect(options: argparse.Namespace, known: Identity | None) -> Connections:
    url = options.server or (known.server if known else None)
    if url is None:
        raise NotEnrolledError("this PC is not enrolled: give --server and --enrol")
    server = read_address(url)
    return Connections(Transport(server, ca=options.ca), Transport(server, ca=options.ca))


def _settle_identity(
    folder: Path,
    known: Identity | None,
    options: argparse.Namespace,
    transport: Transport,
    stopper: Stopper,
) -> Identity | None:
    """The stored identity, or the one that enrolment gives; None when stopped before that."""
    if known is None:
        return _enrol(folder, options, transport, stopper)
    if options.enrol:
        logger.info("enrolled already, as %s; the token is not used", known.name)
    if options.server and options.server.rstrip("/") != known.server:
        # The server has moved; who it is says its key.
        known = replace(known, server=options.server.rstrip("/"))
        identity.save(folder, known)
    return known


def _enrol(
    folder: Path, options: argparse.Namespace, transport: Transport, stopper: Stopper
) -> Identity | None:
    name = options.name or facts.default_name()
    request = enrolment.begin(folder, server=options.server or "", token=options.enrol, name=name)
    if request is None:
        raise NotEnrolledError("this PC is not enrolled: give --enrol TOKEN")
    pace = Pace()
    while not stopper.is_stopping:
        try:
            found = enrolment.ask(folder, request, transport)
        except UnreachableError as error:
            if options.once:
                raise
            delay = pace.after_failure(error.retry_after_s)
            logger.warning("enrolment: %s; again in %.0f s", error, delay)
            stopper.wait(delay)
        else:
            logger.info("enrolled as %s, agent %s", found.name, found.agent_id)
            return found
    return None


def _work(agent: Agent, *, once: bool) -> int:
    if not once:
        agent.run_forever()
        return DONE
    talk = agent.run_once()
    if talk.ok:
        return DONE
    sys.stderr.write(f"kanade-agent: {talk.problem}\n")
    return REFUSED if talk.is_refusal else UNREACHABLE
