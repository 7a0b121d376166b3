"""The addresses of the scheduler's API, below `/api/v1/`."""

from django.urls import URLPattern, URLResolver, path
from rest_framework.routers import SimpleRouter

from scheduler.api.audit import Audit
from scheduler.api.queue import QueueHealth
from scheduler.api.tasks import Tasks

router = SimpleRouter(use_regex_path=False)
router.register("tasks", Tasks)
router.register("audit", Audit)
urlpatterns: list[URLPattern | URLResolver] = [
    *router.urls,
    path("queue/", QueueHealth.as_view({"get": "retrieve"}), name="queue"),
    path("queue/pause/", QueueHealth.as_view({"post": "pause"}), name="queue-pause"),
    path("queue/resume/", QueueHealth.as_view({"post": "resume"}), name="queue-resume"),
]
