"""What the settings read from the environment, and what they refuse.

A production server with a missing or weak secret must not start: the text says which variable is
wrong and how to make a good one.
"""

import os
from pathlib import Path

import environ
from django.core.exceptions import ImproperlyConfigured

LEAST_SECRET_LENGTH = 40
LEAST_DIFFERENT_CHARACTERS = 10
HOW_TO = 'make one with: python -c "import secrets; print(secrets.token_urlsafe(64))"'


def read_environment(base: Path) -> environ.Env:
    """Return the environment, with the file named by KANADE_ENV_FILE (default `.env`) below it."""
    name = os.environ.get("KANADE_ENV_FILE", str(base / ".env"))
    if name and Path(name).is_file():
        environ.Env.read_env(name)
    return environ.Env()


def secret(env: environ.Env, name: str, *, debug: bool) -> str:
    """Return the secret `name`; raise ImproperlyConfigured when it is missing or weak."""
    value = str(env.str(name, default=""))
    if debug and not value:
        return f"insecure-{name.lower()}-for-development-only"
    if not value:
        raise ImproperlyConfigured(f"{name} is not set; {HOW_TO}")
    if debug:
        return value
    if value.startswith("insecure-"):
        raise ImproperlyConfigured(f"{name} is a development value; {HOW_TO}")
    if len(value) < LEAST_SECRET_LENGTH or len(set(value)) < LEAST_DIFFERENT_CHARACTERS:
        raise ImproperlyConfigured(
            f"{name} is too weak: it needs at least {LEAST_SECRET_LENGTH} characters "
            f"of which {LEAST_DIFFERENT_CHARACTERS} differ; {HOW_TO}"
        )
    return value


def database(env: environ.Env) -> dict[str, object]:
    """Return Django's settings of the one database, SQLite in the working folder by default."""
    config: dict[str, object] = dict(env.db("DATABASE_URL", default="sqlite:///kanade.sqlite3"))
    if config["ENGINE"] == "django.db.backends.sqlite3":
        # A write transaction takes its lock at BEGIN, so that it waits and does not fail at COMMIT;
        # FULL, because an acknowledged result is already deleted on the PC. Not trusted_schema=OFF:
        # to older SQLite json_valid(), which checks the JSON columns, is a function not to trust.
        config["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            # Not trusted_schema=OFF: SQLite before 3.41 then refuses the check of JSON columns.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
            " PRAGMA cell_size_check=ON",
        }
        config["CONN_MAX_AGE"] = None
    elif config["ENGINE"] == "django.db.backends.postgresql":
        config["OPTIONS"] = {
            **dict(config.get("OPTIONS") or {}),  # type: ignore[call-overload]  # a mapping here
            "options": "-c statement_timeout=30s -c lock_timeout=10s"
            " -c idle_in_transaction_session_timeout=60s",
            "pool": {
                "min_size": 1,
                "max_size": env.int("KANADE_DB_POOL", default=24),
                "timeout": 20,
            },
        }
        config["CONN_MAX_AGE"] = 0
    else:
        raise ImproperlyConfigured(
            f"DATABASE_URL names {config['ENGINE']}; use sqlite:///FILE or postgres://USER@HOST/NAME"
        )
    return config


def require_loopback(profiles: dict[str, bool], hosts: list[str]) -> None:
    """Refuse a profile, by the variable that switches it on, that other machines could reach."""
    outside = [host for host in hosts if host not in {"localhost", "127.0.0.1", "[::1]"}]
    for name, on in profiles.items():
        if on and outside:
            raise ImproperlyConfigured(
                f"{name}=1 serves this machine only, but ALLOWED_HOSTS names {', '.join(outside)};"
                f" leave {name} out in production"
            )


ENGINES = ("threads", "celery")


def engine(env: environ.Env) -> str:
    """Return who runs claimed bodies: `threads` of the runner, or Celery's workers."""
    name = str(env.str("KANADE_ENGINE", default="threads"))
    if name not in ENGINES:
        raise ImproperlyConfigured(f"KANADE_ENGINE={name} is not known; use threads or celery")
    if name == "celery" and not env.str("CELERY_BROKER_URL", default=""):
        raise ImproperlyConfigured(
            "KANADE_ENGINE=celery needs CELERY_BROKER_URL, such as redis://127.0.0.1:6379/0"
        )
    return name


def celery(env: environ.Env) -> dict[str, object]:
    """Return Celery's settings: a broker wakes and carries, the database alone decides who runs."""
    url = str(env.str("CELERY_BROKER_URL", default=""))
    redis = {
        # A message whose worker died comes back within seconds.
        "visibility_timeout": 3600,
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
    }
    return {
        "CELERY_BROKER_URL": url,
        "KANADE_CELERY_QUEUE": str(env.str("KANADE_CELERY_QUEUE", default="kanade")),
        "CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP": True,
        "CELERY_BROKER_TRANSPORT_OPTIONS": redis if url.startswith("redis") else {},
        # Never anything that unpickles.
        "CELERY_ACCEPT_CONTENT": ["json"],
        "CELERY_TASK_SERIALIZER": "json",
        "CELERY_TASK_IGNORE_RESULT": True,
        "CELERY_TASK_ACKS_LATE": True,
        "CELERY_TASK_REJECT_ON_WORKER_LOST": True,
        "CELERY_WORKER_PREFETCH_MULTIPLIER": 1,
        "CELERY_WORKER_HIJACK_ROOT_LOGGER": False,
        "CELERY_TIMEZONE": "UTC",
        "CELERY_IMPORTS": ["scheduler.beat.clock", "scheduler.engine.executors.celery"],
        "CELERY_BEAT_SCHEDULER": "django_celery_beat.schedulers:DatabaseScheduler",
    }


# How many days what is over is kept, by the variable that says otherwise.
RETENTION_DAYS = {
    "KANADE_TASK_RETENTION_DAYS": 30,
    "KANADE_RUN_RETENTION_DAYS": 30,
    "KANADE_AUDIT_RETENTION_DAYS": 365,
    "KANADE_RESULT_RETENTION_DAYS": 90,
    "KANADE_OUTPUT_RETENTION_DAYS": 30,
    "KANADE_EVALUATION_RETENTION_DAYS": 90,
    "KANADE_OCCURRENCE_RETENTION_DAYS": 400,
}


def retention(env: environ.Env) -> dict[str, int]:
    """Return the days of retention; at least one, because what just ended is still looked at."""
    found = {name: int(env.int(name, default=days)) for name, days in RETENTION_DAYS.items()}
    for name, days in found.items():
        if days < 1:
            raise ImproperlyConfigured(f"{name} is {days}; use 1 day or more")
    return found
