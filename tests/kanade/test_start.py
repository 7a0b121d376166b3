"""T-02: a server that would open a door does not start, and says what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECRET = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0U1v2W3x4Y5z6"
PEPPER = "z9Y8x7W6v5U4t3S2r1Q0p9O8n7M6l5K4j3I2h1G0f9E8d7C6b5A4"
PRODUCTION = {
    "SECRET_KEY": SECRET,
    "KANADE_TOKEN_PEPPER": PEPPER,
    "ALLOWED_HOSTS": "kanade.example.org",
    "KANADE_BASE_URL": "https://kanade.example.org",
    "DATABASE_URL": "sqlite:///:memory:",
}


def start(*arguments: str, **changes: str | None) -> subprocess.CompletedProcess[str]:
    """What `manage.py check` says with production's environment and these changes."""
    environment = {"PATH": os.environ["PATH"], "KANADE_ENV_FILE": ""} | {
        name: value for name, value in (PRODUCTION | changes).items() if value is not None
    }
    return subprocess.run(
        [sys.executable, "manage.py", "check", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def refused(result: subprocess.CompletedProcess[str], *words: str) -> None:
    """Assert that it did not start, in one sentence with these words."""
    assert result.returncode != 0
    last = result.stderr.strip().splitlines()[-1]
    for word in words:
        assert word in last


def test_a_whole_production_environment_starts_without_a_warning() -> None:
    result = start("--deploy", "--fail-level", "WARNING")

    assert (result.returncode, result.stderr) == (0, "")
    assert "no issues" in result.stdout


@pytest.mark.parametrize("name", ["SECRET_KEY", "KANADE_TOKEN_PEPPER"])
@pytest.mark.parametrize("value", [None, ""], ids=["missing", "empty"])
def test_a_missing_secret_stops_the_start(name: str, value: str | None) -> None:
    refused(start(**{name: value}), f"{name} is not set", "make one with")


@pytest.mark.parametrize("name", ["SECRET_KEY", "KANADE_TOKEN_PEPPER"])
@pytest.mark.parametrize(
    "value",
    ["short", "a" * 64, "abababababababababababababababababababababab", SECRET[:39]],
    ids=["short", "one character", "two characters", "one too short"],
)
def test_a_weak_secret_stops_the_start_and_is_not_shown(name: str, value: str) -> None:
    result = start(**{name: value})

    refused(result, f"{name} is too weak", "make one with")
    assert value not in result.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("name", ["SECRET_KEY", "KANADE_TOKEN_PEPPER"])
def test_a_development_secret_stops_the_start(name: str) -> None:
    refused(start(**{name: f"insecure-{SECRET}"}), f"{name} is a development value")


@pytest.mark.parametrize("profile", ["KANADE_LOCAL", "DEBUG"])
@pytest.mark.parametrize("host", ["kanade.example.org", "0.0.0.0", "*", "localhost.example.org"])
def test_a_profile_for_development_serves_this_machine_alone(profile: str, host: str) -> None:
    answer = start(**{profile: "1"}, ALLOWED_HOSTS=f"localhost,{host}")

    refused(answer, f"{profile}=1", "this machine only", host)


def test_the_local_profile_starts_on_loopback() -> None:
    result = start(KANADE_LOCAL="1", ALLOWED_HOSTS="localhost,127.0.0.1", KANADE_BASE_URL=None)

    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("url", ["mysql://root@127.0.0.1/kanade", "oracle://x@127.0.0.1/y"])
def test_a_database_that_is_not_supported_stops_the_start(url: str) -> None:
    assert start(DATABASE_URL=url).returncode != 0


def test_an_engine_that_is_not_known_stops_the_start() -> None:
    refused(start(KANADE_ENGINE="carrier-pigeon"), "carrier-pigeon is not known")


def test_celerys_workers_need_a_broker() -> None:
    refused(start(KANADE_ENGINE="celery"), "KANADE_ENGINE=celery needs CELERY_BROKER_URL")
    assert start(KANADE_ENGINE="celery", CELERY_BROKER_URL="redis://127.0.0.1").returncode == 0


def test_a_log_format_that_is_not_known_stops_the_start() -> None:
    refused(start(LOG_FORMAT="xml"), "json or text")
