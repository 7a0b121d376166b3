"""Every address of the site, made from the URL configuration itself, and a row behind each."""

import re
from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

from django.contrib.auth.models import User
from django.urls import URLPattern, URLResolver, get_resolver

from fleet.models import ApiToken, EnrolmentToken, Output, Result
from fleet.rules.command_states import CommandState
from tests.fleet.make import (
    NOW,
    make_agent,
    make_command,
    make_execution,
    make_group,
    make_job,
    make_schedule,
)

KEY = UUID("01990000-0000-7000-8000-000000000001")
# Above all that a sequence gives out: the tests make rows beside these.
ROW = 700_001
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
VALUES = {"uuid": str(KEY), "int": str(ROW), "fleet_slug": "x", "slug": "stdout", "str": "x"}
_PARAMETER = re.compile(r"<(?:(?P<converter>\w+):)?\w+>")
_PATTERN = re.compile(r"\(\?P<\w+>(?P<first>\w*)[^)]*\)")
_BY_UUID = ("fleet/execution/", "fleet/command/", "fleet/result/")


def routes() -> list[str]:
    """The route of every view, as it is written in the configuration."""
    return sorted(set(_walk(get_resolver().url_patterns, "")))


def _walk(patterns: list[URLPattern | URLResolver], prefix: str) -> Iterator[str]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern.url_patterns, route)
        else:
            yield route


def address(route: str) -> str:
    """An address of that route; its parameters name the rows of `make_rows`."""
    path = str(KEY) if any(part in route for part in _BY_UUID) else str(ROW)
    values = VALUES | {"path": path}
    plain = _PATTERN.sub(lambda found: found["first"] or "nothing", route)
    plain = _PARAMETER.sub(lambda found: values[found["converter"] or "int"], plain)
    return "/" + plain.replace("^", "").replace("$", "").replace("\\", "")


def make_rows() -> None:
    """One row of each kind, called `x`, with the key `ROW` or `KEY`."""
    agent = make_agent("x", pk=ROW)
    make_group("x", agent)
    job = make_job("x")
    schedule = make_schedule("x", job=job)
    execution = make_execution(job, id=KEY, schedule=schedule, schedule_slug="x")
    make_command(agent, execution=execution, id=KEY, state=CommandState.FAILED)
    Result.objects.create(
        command_id=KEY,
        execution_id=KEY,
        agent_id=ROW,
        job_id=job.pk,
        revision_id=execution.revision_id,
        job_version="1",
        outcome="failed",
        received_at=NOW,
    )
    Output.objects.create(
        command_id=KEY, stream="stdout", head=b"out", tail=b"", total=3, received_at=NOW
    )
    times = {"expires_at": NOW + timedelta(days=1), "created_at": NOW}
    EnrolmentToken.objects.create(pk=ROW, public_id="e" * 16, secret_hash="0" * 64, **times)
    ApiToken.objects.create(
        pk=ROW, public_id="a" * 16, secret_hash="0" * 64, user=User.objects.create(), **times
    )
