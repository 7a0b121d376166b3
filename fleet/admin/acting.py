"""Who acts and when, as an edge tells the verbs; and how their refusals are shown."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib import messages
from django.http import HttpRequest

from fleet.rules.refusals import Refusal
from scheduler.public import Actor


def actor_of(request: HttpRequest) -> Actor:
    """The signed-in person behind a request."""
    user = request.user
    return Actor(
        kind="user",
        name=user.get_username(),
        user_id=user.pk,
        address=request.META.get("REMOTE_ADDR", ""),
    )


@contextmanager
def refusals_shown(request: HttpRequest, what: str = "") -> Iterator[None]:
    """Show a refused verb as a message instead of an error page."""
    try:
        yield
    except Refusal as refusal:
        messages.error(request, f"{what}: {refusal.message}" if what else refusal.message)
