"""The OpenAPI document and its page, for signed-in staff."""

from typing import Any

from django.contrib.admin.views.decorators import staff_member_required
from django.templatetags.static import static
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler.api.problems import MEDIA_TYPE


class DocumentationPage(SpectacularSwaggerSplitView):
    """The page and its start script as two answers, and no inline style: the CSP allows neither."""

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Answer the page, or with `?script` its start script."""
        response: Response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]  # the package has no types
        response.data["page_css"] = static("api/docs.css")
        return response


PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "What is wrong, as RFC 9457 has it.",
    "required": ["type", "title", "status", "detail", "id"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "id": {"type": "string", "description": "To quote to the server's operator."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "message"],
                "properties": {
                    "field": {"type": "string", "description": "The key's full dotted path."},
                    "message": {"type": "string"},
                },
            },
        },
    },
}


def add_problems(result: dict[str, Any], **_context: object) -> dict[str, Any]:
    """Return the document with the one shape of every error added to each operation."""
    result.setdefault("components", {}).setdefault("schemas", {})["Problem"] = PROBLEM
    answer = {
        "description": "The request was refused; the status says how.",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for operations in result["paths"].values():
        for operation in operations.values():
            operation["responses"]["default"] = answer
    return result


schema = SpectacularAPIView.as_view()
# People are sent to the login; a program has no use for the page.
docs = staff_member_required(DocumentationPage.as_view(), login_url="admin:login")
