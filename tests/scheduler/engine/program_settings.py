"""The scheduler alone, on the database of the test that starts the process."""

import os

from kanade import environment
from tests.settings import *  # noqa: F403  # the same as the test's, but for what follows
from tests.settings import BASE_DIR

os.environ["DATABASE_URL"] = os.environ["PROGRAM_DATABASE"]
DATABASES = {"default": environment.database(environment.read_environment(BASE_DIR))}
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "scheduler"]
