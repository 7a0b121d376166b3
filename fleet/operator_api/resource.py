"""What the fleet's resources share beside the common ground: manifests, and refusals."""

from typing import Any

from rest_framework import exceptions

from fleet.operator_api.refusals import as_api_error
from fleet.rules.manifest import ManifestError
from fleet.rules.refusals import Refusal
from scheduler.api.filter_fields import StrictForm
from scheduler.api.resource import Resource as AnyResource
from scheduler.api.resource import Rights

__all__ = ["Resource", "Rights"]


class Resource(AnyResource):
    """The base of the fleet's views."""

    def document(self) -> dict[str, Any]:
        """Return the body of a request that carries a manifest; no body at all is none."""
        data = self.request.data if self.request.stream or self.request.data else None
        if not isinstance(data, dict):
            raise exceptions.ParseError("send one JSON object")
        return data

    def query(self, form: type[StrictForm]) -> dict[str, Any]:
        """Return the validated query parameters; refuse those that the form does not know."""
        found = form(self.request.query_params)
        if not found.is_valid():
            raise exceptions.ValidationError(
                {name: [str(one) for one in errors] for name, errors in found.errors.items()}
            )
        return found.cleaned_data

    def translated(self, error: Exception) -> Exception:
        """Return the HTTP error for a refusal of the fleet."""
        if isinstance(error, (Refusal, ManifestError)):
            return as_api_error(error)
        return error
