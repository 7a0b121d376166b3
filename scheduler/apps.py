"""The scheduler as a Django application."""

from django.apps import AppConfig


class SchedulerConfig(AppConfig):
    """Tasks, their runs, and the runners that execute them."""

    name = "scheduler"
    verbose_name = "Scheduler"

    def ready(self) -> None:
        """Register the scheduler's own kinds."""
        # Models can be imported only now.
        from scheduler import backend  # noqa: PLC0415
        from scheduler.beat import sending  # noqa: PLC0415
        from scheduler.engine import prune  # noqa: PLC0415

        prune.register()
        backend.register()
        sending.register()
