"""The admin site: its name, and a front page that tells how the fleet is."""

from django.contrib.admin import AdminSite


class KanadeAdminSite(AdminSite):
    """The face of Kanade."""

    site_header = "Kanade"
    site_title = "Kanade"
    index_title = "Fleet"
    enable_nav_sidebar = True
