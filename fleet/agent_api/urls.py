"""The addresses of agents, below `/api/agent/v1/`."""

from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from fleet.agent_api import views

# No cookie opens anything here, so no page of another site can use one.
urlpatterns = [
    path("enrol", csrf_exempt(views.Enrol.as_view()), name="agent-enrol"),
    path("exchange", csrf_exempt(views.Exchange.as_view()), name="agent-exchange"),
]
