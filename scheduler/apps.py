"""The scheduler as a Django application."""

from django.apps import AppConfig


class SchedulerConfig(AppConfig):
    """Tasks, their runs, and the runners that execute them."""

    name = "scheduler"
    verbose_name = "Scheduler"
