"""Celery's application: `celery -A kanade worker`, `celery -A kanade beat`."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kanade.settings")

app = Celery("kanade")
app.config_from_object("django.conf:settings", namespace="CELERY")
