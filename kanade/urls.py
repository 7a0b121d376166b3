"""Every address of the site."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from kanade import documentation, health, metrics

urlpatterns: list[URLPattern | URLResolver] = [
    # First, for it is asked most.
    path("api/agent/v1/", include("fleet.agent_api.urls")),
    path("", RedirectView.as_view(pattern_name="admin:index"), name="home"),
    path("admin/", admin.site.urls),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("api/v1/", include("fleet.operator_api.urls")),
    path("api/v1/", include("scheduler.api.urls")),
    path("api/schema/", documentation.schema, name="schema"),
    path("api/docs/", documentation.docs, name="docs"),
]

handler400 = "kanade.errors.bad_request"
handler403 = "kanade.errors.permission_denied"
handler404 = "kanade.errors.not_found"
handler500 = "kanade.errors.server_error"
