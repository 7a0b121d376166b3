"""The whole site on the database and the broker of the test that starts the process."""

import os

os.environ["CELERY_BROKER_URL"] = os.environ["PROGRAM_BROKER"]
os.environ["KANADE_CELERY_QUEUE"] = os.environ["PROGRAM_QUEUE"]

from kanade import environment
from tests.settings import *  # noqa: F403  # the same as the test's, but for what follows
from tests.settings import BASE_DIR, INSTALLED_APPS

os.environ["DATABASE_URL"] = os.environ["PROGRAM_DATABASE"]
DATABASES = {"default": environment.database(environment.read_environment(BASE_DIR))}
INSTALLED_APPS = [*INSTALLED_APPS, "tests.scheduler.beat.kinds"]
# The patience of a test, in seconds.
CELERY_BEAT_MAX_LOOP_INTERVAL = 0.5
