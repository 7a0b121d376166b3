"""The OpenAPI document and its page, for signed-in staff."""

from typing import Any

from django.contrib.admin.views.decorators import staff_member_required
from django.templatetags.static import static
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.response import Response


class DocumentationPage(SpectacularSwaggerSplitView):
    """The page and its start script as two answers, and no inline style: the CSP allows neither."""

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Answer the page, or with `?script` its start script."""
        response: Response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]  # the package has no types
        response.data["page_css"] = static("api/docs.css")
        return response


schema = SpectacularAPIView.as_view()
# People are sent to the login; a program has no use for the page.
docs = staff_member_required(DocumentationPage.as_view(), login_url="admin:login")
