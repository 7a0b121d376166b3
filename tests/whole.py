"""`make test` and `make prove`: the suite on every database that answers, and what was left out.

With CI=true a missing PostgreSQL or browser is a failure, never a skip.
"""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg
import psycopg.sql

DEFAULT_POSTGRES = "postgres://postgres@127.0.0.1:5432/postgres"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WORKERS = "3"
# These touch no database, or ask it nothing that depends on which it is: once is enough.
ONCE = (
    "tests/architecture",
    "tests/fleet/agent",
    "tests/fleet/rules",
    "tests/journey/test_api_page.py",
    "tests/journey/test_simulated_fleet.py",
    "tests/scheduler/rules",
    "tests/kanade/test_bridge.py",
    "tests/kanade/test_doors.py",
    "tests/kanade/test_local.py",
    "tests/kanade/test_logs.py",
    "tests/kanade/test_start.py",
)

# A long look at how pages escape what they show, whatever stored it.
ESCAPING = (
    "tests/fleet/admin/test_every_page.py::test_hostile_words_add_no_element_and_no_attribute",
)


def main(arguments: Sequence[str]) -> int:
    """Run the tiers; return 0 when all of them passed."""
    prove = "--prove" in arguments
    ci = os.environ.get("CI") == "true"
    postgres = os.environ.get("TEST_POSTGRES_URL", DEFAULT_POSTGRES)
    why_no_postgres = _refusal_of(postgres)
    why_no_browser = _missing_browser()
    left_out = [reason for reason in (why_no_postgres, why_no_browser) if reason]
    databases = ["sqlite"] + ([] if why_no_postgres else ["postgres"])
    marks = "not prove" if not prove else "prove or concurrency or not concurrency"
    if why_no_browser:
        marks = f"({marks}) and not browser"
    started = time.monotonic()
    codes = [_run(database, marks, prove=prove, postgres=postgres) for database in databases]
    print(f"\nRan on {' and '.join(databases)} in {time.monotonic() - started:.0f} s.")
    for reason in left_out:
        print(f"Left out: {reason}")
    if ci and left_out:
        print("CI=true: nothing may be left out.")
        return 1
    return max(codes)


def _refusal_of(url: str) -> str | None:
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.Error as error:
        reason = str(error).strip().splitlines()[0]
        return f"PostgreSQL (set TEST_POSTGRES_URL): {reason}"
    return None


def _missing_browser() -> str | None:
    if any(shutil.which(name) for name in BROWSERS):
        return None
    return "the browser tests: no chromium on this machine"


def _run(database: str, marks: str, *, prove: bool, postgres: str) -> int:
    """Run pytest on one database in a folder and under a name of its own; clean up after it."""
    suffix = secrets.token_hex(4)
    scratch = Path(tempfile.mkdtemp(prefix="kanade-tests-"))
    scratch.chmod(0o711)  # scripts that run as another user reach their own folders in it
    environment = os.environ | {
        "TEST_DATABASE": database,
        "TEST_DB_SUFFIX": suffix,
        "TEST_FOLDER": str(scratch),
        "TEST_POSTGRES_URL": postgres,
        "TMPDIR": str(scratch),
    }
    if prove:
        environment["KANADE_PROVE"] = "1"
    print(f"\n=== {database} ===", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-n", WORKERS, "--dist", "loadscope"]
    command += ["--no-loadscope-reorder", "--durations", "20", "-m", marks]
    if database != "sqlite":
        command += [f"--ignore={path}" for path in ONCE]
        command += [f"--deselect={test}" for test in ESCAPING]
    try:
        return subprocess.run(command, env=environment, check=False).returncode
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        if database == "postgres":
            _drop(postgres, suffix)


def _drop(url: str, suffix: str) -> None:
    """Drop what a killed run left of its databases."""
    with psycopg.connect(url, autocommit=True) as connection:
        names = connection.execute(
            "SELECT datname FROM pg_database WHERE datname LIKE %s", [f"%kanade_test_{suffix}%"]
        ).fetchall()
        for (name,) in names:
            connection.execute(
                psycopg.sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(
                    psycopg.sql.Identifier(name)
                )
            )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
