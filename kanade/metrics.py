"""The figures of the service for Prometheus: read from the database, so one process tells all."""

import hmac
from collections.abc import Iterator, Mapping
from datetime import datetime

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from fleet.flow.figures import Figures, figures
from scheduler.public import queue_health
from scheduler.rules.health import QueueHealth


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer the figures to who has KANADE_METRICS_TOKEN; without such a token there is no page."""
    token = str(settings.KANADE_METRICS_TOKEN)
    if not token:
        raise Http404
    given = request.headers.get("Authorization", "")
    if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        return HttpResponse(
            "not authorized\n",
            status=401,
            content_type="text/plain",
            headers={"WWW-Authenticate": 'Bearer realm="kanade metrics"'},
        )
    registry = CollectorRegistry()
    registry.register(Gauges(timezone.now()))
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class Gauges(Collector):
    """Everything that is told, at one moment."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def describe(self) -> Iterator[Metric]:
        """Name nothing beforehand: the collector asks the database once."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Read fleet and queue."""
        yield from fleet_gauges(figures(self.now))
        yield from queue_gauges(queue_health(self.now))


def fleet_gauges(found: Figures) -> Iterator[Metric]:
    """Return the gauges of the fleet."""
    yield gauge("kanade_frozen", "1 while nothing is handed out.", found.freeze.frozen)
    unreadable = found.freeze.unreadable is not None
    yield gauge("kanade_freeze_unreadable", "1 while the freeze cannot be read.", unreadable)
    yield labelled("kanade_agents", "PCs by state.", "state", found.agents)
    yield gauge("kanade_agents_online", "Active PCs heard within two minutes.", found.online)
    yield labelled("kanade_commands_open", "Commands under way.", "state", found.commands)
    yield labelled("kanade_executions_open", "Executions under way.", "state", found.executions)
    yield gauge("kanade_schedules_enabled", "Schedules that are switched on.", found.schedules)
    if found.tick_age_s is not None:
        yield gauge(
            "kanade_tick_age_seconds", "Since the schedules were looked at.", found.tick_age_s
        )


def queue_gauges(health: QueueHealth) -> Iterator[Metric]:
    """Return the gauges of the scheduler; its counts stop at ten thousand."""
    yield labelled("kanade_tasks", "Live tasks by state.", "state", health.by_state)
    yield gauge("kanade_task_runs_failed_24h", "Failed runs of a day.", health.failed_runs_24h)
    yield gauge(
        "kanade_oldest_due_task_age_seconds",
        "How long the oldest due task has waited.",
        health.oldest_due_age_s or 0.0,
    )
    yield gauge("kanade_tasks_stuck", "Tasks that wait for nothing.", len(health.stuck_tasks))
    yield gauge("kanade_leases_expired", "Leases nobody keeps.", len(health.expired_leases))
    alive = sum(runner.is_alive for runner in health.runners)
    yield gauge("kanade_runners_alive", "Runners heard of lately.", alive)
    verdicts = {word: float(word == health.verdict) for word in ("ok", "degraded", "down")}
    yield labelled("kanade_queue", "The verdict on the queue.", "verdict", verdicts)


def gauge(name: str, what: str, value: float) -> Metric:
    """Return a gauge of one value."""
    return GaugeMetricFamily(name, what, value=float(value))


def labelled(name: str, what: str, label: str, values: Mapping[str, float]) -> Metric:
    """Return a gauge with a value for each label."""
    family = GaugeMetricFamily(name, what, labels=[label])
    for key, value in values.items():
        family.add_metric([key], float(value))
    return family
