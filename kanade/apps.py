"""The admin site of Kanade in place of Django's own."""

from django.contrib.admin.apps import AdminConfig


class KanadeAdminConfig(AdminConfig):
    """The admin, with Kanade's front page."""

    default_site = "kanade.site.KanadeAdminSite"
