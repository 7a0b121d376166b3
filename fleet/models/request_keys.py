"""Requests that a program may repeat without doing them twice."""

from django.conf import settings
from django.db import models
from django.db.models import UniqueConstraint


class RequestKey(models.Model):
    """A key that a caller gave to a request, and the execution that the request made."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="request_keys"
    )
    key = models.CharField(max_length=200)
    # What was asked for: the same key with another request is a mistake of the caller.
    request_sha256 = models.CharField(max_length=64)
    execution_id = models.UUIDField(null=True)
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            UniqueConstraint(fields=["user", "key"], name="a_request_key_is_used_once"),
        ]

    def __str__(self) -> str:
        return self.key
