"""The site's own settings with fixed secrets and a test database.

`TEST_DATABASE=postgres` runs the suite on the server at TEST_POSTGRES_URL.
"""

import os
import tempfile
from pathlib import Path

os.environ["KANADE_ENV_FILE"] = ""
os.environ["SECRET_KEY"] = "tests-0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOP"
os.environ["KANADE_TOKEN_PEPPER"] = "pepper-0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJ"
os.environ["LOG_LEVEL"] = os.environ.get("TEST_LOG_LEVEL", "CRITICAL")
if os.environ.get("TEST_DATABASE") == "postgres":
    os.environ["DATABASE_URL"] = os.environ.get(
        "TEST_POSTGRES_URL", "postgres://postgres@127.0.0.1:5432/postgres"
    )
else:
    os.environ["DATABASE_URL"] = f"sqlite:///{tempfile.gettempdir()}/kanade-unused.sqlite3"

from kanade.settings import *  # noqa: F403  # the site's own settings are what is tested
from kanade.settings import DATABASES, STORAGES

# Two runs on one machine never share a database.
_SUFFIX = os.environ.get("TEST_DB_SUFFIX", str(os.getppid()))
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1"]
SECURE_SSL_REDIRECT = False
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = False
SESSION_COOKIE_NAME = "kanade"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
WHITENOISE_AUTOREFRESH = True
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # A file: threads and processes of a test share it.
    folder = Path(os.environ.get("TEST_FOLDER", tempfile.gettempdir()))
    DATABASES["default"]["TEST"] = {"NAME": str(folder / f"kanade-test-{_SUFFIX}.sqlite3")}
else:
    DATABASES["default"]["TEST"] = {"NAME": f"kanade_test_{_SUFFIX}"}
