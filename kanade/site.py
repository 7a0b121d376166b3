"""The admin site: its sections, what every page knows, and its front page."""

from collections.abc import Mapping, Sequence
from inspect import isclass
from typing import Any

from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone

from fleet.flow.freeze import known_freeze
from kanade.dashboard import dashboard

# Each section of the navigation with its models, in reading order, and their icons.
SECTIONS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Watch",
        (
            ("fleet.execution", "execution"),
            ("fleet.command", "runner"),
            ("fleet.result", "result"),
            ("fleet.agent", "agent"),
        ),
    ),
    (
        "Plan",
        (
            ("fleet.schedule", "schedule"),
            ("fleet.job", "job"),
            ("fleet.group", "group"),
            ("fleet.freeze", "freeze"),
        ),
    ),
    (
        "Engine",
        (
            ("scheduler.task", "task"),
            ("scheduler.run", "execution"),
            ("scheduler.queue", "wait"),
            ("scheduler.runner", "runner"),
            ("scheduler.auditentry", "audit"),
        ),
    ),
    (
        "Access",
        (
            ("fleet.enrolmenttoken", "key"),
            ("fleet.apitoken", "key"),
            ("auth.user", "user"),
            ("auth.group", "group"),
        ),
    ),
)
OTHER_ICON = "more"
# Where the model's own name reads badly.
NAMES = {
    "fleet.freeze": "Freeze",
    "fleet.apitoken": "API tokens",
    "auth.group": "Roles",
    "scheduler.auditentry": "Audit",
}
# Reached from other pages.
HIDDEN = frozenset({"fleet.jobrevision"})
# Their pages follow neither our rights nor our policy: docs/decisions/0015.
WITHOUT_PAGES = frozenset({"django_celery_beat"})


class KanadeAdminSite(AdminSite):
    """The face of Kanade."""

    site_header = "Kanade"
    site_title = "Kanade"
    index_title = "Fleet"
    # The pages have a navigation of their own, which works on a phone and without a script.
    enable_nav_sidebar = False

    def register(self, model_or_iterable: Any, admin_class: Any = None, **options: Any) -> None:
        """Take the models of an application that has pages here; others are left out."""
        models = [model_or_iterable] if isclass(model_or_iterable) else model_or_iterable
        ours = [one for one in models if _app_of(one) not in WITHOUT_PAGES]
        super().register(ours, admin_class, **options)

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """What every page knows: the navigation of this user, and whether the fleet is frozen."""
        context = super().each_context(request)
        if context["has_permission"]:
            context["freeze"] = known_freeze(timezone.now())
        context["sections"] = sections(context["available_apps"], request.path)
        context["home_path"] = reverse("admin:index", current_app=self.name)
        return context

    def get_urls(self) -> list[Any]:
        """Return the admin's addresses and that of the front page's living part."""
        live = path("dashboard/", self.admin_view(self.dashboard_view), name="dashboard")
        return [live, *super().get_urls()]

    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Show the front page: how the fleet is."""
        return super().index(request, {**dashboard(request), **(extra_context or {})})

    def dashboard_view(self, request: HttpRequest) -> HttpResponse:
        """Show the part of the front page that renews itself."""
        context = dashboard(request)
        if context["overview"] is None:
            raise PermissionDenied
        return render(request, "kanade/dashboard_live.html", context)


def _app_of(model: Any) -> str:
    return str(model._meta.app_label)  # noqa: SLF001  # Django's public name for it


def sections(apps: list[Mapping[str, Any]], path: str) -> list[dict[str, object]]:
    """The navigation: the models that this user may see, by section; `path` marks the current."""
    models = {
        f"{app['app_label']}.{model['object_name'].lower()}": model
        for app in apps
        for model in app["models"]
        if model["admin_url"]
    }
    found = []
    for name, wanted in SECTIONS:
        known = [
            ({**models[label], "name": NAMES.get(label, models[label]["name"])}, icon)
            for label, icon in wanted
            if label in models
        ]
        found.append(section(name, known, path))
    placed = {label for _, wanted in SECTIONS for label, _ in wanted} | HIDDEN
    rest = [(model, OTHER_ICON) for label, model in models.items() if label not in placed]
    return [part for part in (*found, section("More", rest, path)) if part["entries"]]


def section(
    name: str, models: Sequence[tuple[Mapping[str, Any], str]], path: str
) -> dict[str, object]:
    """One section: its heading and its links."""
    return {
        "name": name,
        "slug": name.lower(),
        "entries": [
            {
                "name": model["name"],
                "url": model["admin_url"],
                "icon": icon,
                "current": path.startswith(model["admin_url"]),
            }
            for model, icon in models
        ],
    }
