"""The addresses of agents, below `/api/agent/v1/`."""

from django.urls import path

from fleet.agent_api import views

urlpatterns = [
    path("enrol", views.Enrol.as_view(), name="agent-enrol"),
    path("exchange", views.Exchange.as_view(), name="agent-exchange"),
]
