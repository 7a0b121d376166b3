"""What all resources share: one clock reading, who acts, their rights, and how a refusal reads."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from django.db.models import Model, QuerySet
from django.utils import timezone
from django_filters.rest_framework import FilterSet
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle
from rest_framework.viewsets import GenericViewSet

from scheduler.api.permissions import HasRights
from scheduler.api.strict import StrictSerializer
from scheduler.public import Actor

M = TypeVar("M", bound=Model)
Rights = Mapping[str, tuple[str, ...]]


class Resource(GenericViewSet[Any]):
    """The base of the API's views. `rights` names, for each action, what the caller must hold."""

    permission_classes = (HasRights,)
    rights: ClassVar[Rights] = {}
    now: datetime

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Read the clock once, then let the framework check who may come in."""
        self.now = timezone.now()
        super().initial(request, *args, **kwargs)

    def check_permissions(self, request: Request) -> None:
        """Refuse a verb that the address does not have; only then ask for rights."""
        signed_in: Any = request.user
        if signed_in and self.action is None:
            raise exceptions.MethodNotAllowed(request.method or "")
        super().check_permissions(request)

    def require(self, *rights: str) -> None:
        """Refuse the request unless the caller also holds `rights`."""
        missing = [right for right in rights if not self.request.user.has_perm(right)]
        if missing:
            raise exceptions.PermissionDenied(f"This needs the right {' and '.join(missing)}.")

    @property
    def actor(self) -> Actor:
        """Who acts, as the audit names it."""
        user = self.request.user
        address = str(BaseThrottle().get_ident(self.request) or "")
        # A session has nothing but its user.
        kind = "user" if self.request.auth is None else "token"
        return Actor(kind, user.get_username(), user.pk, address)  # type: ignore[arg-type]  # one of the two

    def read(self, body: type[StrictSerializer]) -> dict[str, Any]:
        """Return the validated values of a small body; an absent body is an empty one."""
        serializer = body(data=self.request.data)
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)

    def narrowed(self, rows: QuerySet[M], filters: type[FilterSet]) -> QuerySet[M]:
        """Return the rows that the query asks for; refuse a query that `filters` does not know."""
        found = filters(self.request.query_params, queryset=rows, request=self.request)
        if not found.is_valid():
            raise exceptions.ValidationError(
                {
                    name: [str(message) for message in errors]
                    for name, errors in found.errors.items()
                }
            )
        narrowed: QuerySet[M] = found.qs
        return narrowed

    def translated(self, error: Exception) -> Exception:
        """Return the HTTP error for a refusal of the domain, any other error as it is."""
        return error

    def handle_exception(self, exc: Exception) -> Response:
        """Answer a refusal of the domain as a problem document."""
        return super().handle_exception(self.translated(exc))
