"""The fleet as a Django application."""

from django.apps import AppConfig


class FleetConfig(AppConfig):
    """Jobs, schedules, agents and what they did."""

    name = "fleet"
    verbose_name = "Fleet"

    def ready(self) -> None:
        """Register the kinds that the scheduler calls."""
        from fleet import handlers  # noqa: F401, PLC0415  # importing it registers the kinds
