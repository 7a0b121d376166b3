"""The addresses of the API, below `/api/v1/`."""

from django.urls import URLPattern, URLResolver, path, register_converter
from rest_framework.routers import SimpleRouter

from fleet.operator_api.addresses import SlugConverter
from fleet.operator_api.views.agents import Agents
from fleet.operator_api.views.executions import Executions
from fleet.operator_api.views.freezes import Freezes
from fleet.operator_api.views.groups import Groups
from fleet.operator_api.views.jobs import Jobs
from fleet.operator_api.views.results import Results
from fleet.operator_api.views.schedules import Schedules

register_converter(SlugConverter, "fleet_slug")

router = SimpleRouter(use_regex_path=False)
router.register("agents", Agents)
router.register("executions", Executions)
router.register("groups", Groups)
router.register("jobs", Jobs)
router.register("results", Results)
router.register("schedules", Schedules)
freeze = Freezes.as_view({"get": "retrieve", "put": "update", "delete": "destroy"})
urlpatterns: list[URLPattern | URLResolver] = [
    *router.urls,
    path("freeze/", freeze, name="freeze"),
]
