"""Is the process alive, and is the service ready to be sent requests?"""

from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache

import django.db
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from fleet.flow.signing import SigningKeyError, server_signer
from fleet.models import ServerIdentity
from scheduler.engine import inspection

Key = tuple[str, str]


class Verdict(StrEnum):
    """How a part of the service is."""

    OK = "ok"
    # It works, and somebody should look: the service stays in the balancer.
    DEGRADED = "degraded"
    FAILED = "failed"
    # What it depends on failed.
    UNKNOWN = "unknown"


@require_safe
def healthz(_request: HttpRequest) -> JsonResponse:
    """Answer without touching the database: the process serves requests."""
    return JsonResponse({"status": Verdict.OK})


@require_safe
def readyz(_request: HttpRequest) -> JsonResponse:
    """Answer 200 when requests can be served, else 503; the body names each part's verdict."""
    parts = readiness()
    return JsonResponse({"status": worst(parts), "parts": parts}, status=status_of(parts))


def worst(parts: dict[str, Verdict]) -> Verdict:
    """Return the verdict for the whole."""
    for verdict in (Verdict.FAILED, Verdict.DEGRADED):
        if verdict in parts.values():
            return verdict
    return Verdict.OK


def status_of(parts: dict[str, Verdict]) -> int:
    """Return the HTTP status: only a part that failed takes the service out of the balancer."""
    return 503 if worst(parts) is Verdict.FAILED else 200


def readiness() -> dict[str, Verdict]:
    """Return the verdict on each part; those behind a failed database are unknown."""
    parts = {"database": _verdict(_ask_database)}
    behind = {"migrations": _ask_migrations, "keys": _ask_keys, "runner": _ask_runner}
    for name, ask in behind.items():
        answers = parts["database"] is Verdict.OK
        parts[name] = _verdict(ask) if answers else Verdict.UNKNOWN
    return parts


def _verdict(ask: Callable[[], Verdict]) -> Verdict:
    try:
        return ask()
    except (django.db.Error, SigningKeyError):
        return Verdict.FAILED


def _ask_database() -> Verdict:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()
    return Verdict.OK


def _ask_migrations() -> Verdict:
    """Whether every migration of this release is applied; a newer database is fine."""
    applied = MigrationRecorder(connection).applied_migrations()
    return Verdict.OK if _migrations_of_this_release() <= applied.keys() else Verdict.FAILED


def _ask_keys() -> Verdict:
    """Whether the server can sign what it hands out; the key is made with the first hand-out."""
    if ServerIdentity.objects.exists():
        server_signer()
    return Verdict.OK


def _ask_runner() -> Verdict:
    """Whether somebody runs tasks: without it the site works and the freeze button, too."""
    try:
        alive = any(runner.is_alive for runner in inspection.runners())
    except django.db.Error:
        alive = False
    return Verdict.OK if alive else Verdict.DEGRADED


@lru_cache(maxsize=1)
def _migrations_of_this_release() -> frozenset[Key]:
    """Return the migrations in the code, read from the disk once."""
    loader = MigrationLoader(None, ignore_no_migrations=True)
    return frozenset(loader.disk_migrations)
