"""Who acts, as an edge tells the verbs."""

from django.http import HttpRequest

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
