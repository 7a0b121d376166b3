"""Tokens are shown once, in the answer to the form that made them, and nowhere else."""

from typing import Any, TypeVar

from django.db.models import Model
from django.http import HttpRequest, HttpResponse

from fleet.admin.verbs import VerbAdmin

M = TypeVar("M", bound=Model)
KEPT_AS = "kanade.shown_once"


class SecretAdmin(VerbAdmin[M]):
    """Rows that are made with a secret, withdrawn, and never edited or deleted."""

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        """Answer no."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        """Answer no: a withdrawn token stays as history."""
        return False

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Save nothing more: the verb has saved it all."""

    def made(self, request: HttpRequest, obj: M, row: M, secret: str) -> None:
        """Take over the row that a verb has made, and remember its secret for this answer."""
        obj.__dict__.update({key: value for key, value in row.__dict__.items() if key != "_state"})
        request.META[KEPT_AS] = secret

    def shown_once(self, secret: str) -> dict[str, Any]:
        """What the page of a new secret says."""
        raise NotImplementedError

    def response_add(
        self, request: HttpRequest, obj: M, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the secret in this very answer, which no cache may keep."""
        context = {
            "title": f"New {self.opts.verbose_name}",
            "secret": request.META.pop(KEPT_AS),
            "back": self.object_url(obj),
        }
        whole = {**context, **self.shown_once(str(context["secret"]))}
        return self.page(request, "kanade/secret.html", obj, whole)
