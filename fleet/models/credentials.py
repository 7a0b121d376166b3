"""Tokens, hashed, and the key that signs what agents are told."""

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, F, Q

from fleet.models.groups import Group
from fleet.models.ids import new_id


class EnrolmentToken(models.Model):
    """Lets PCs enrol: shown once, kept as a hash."""

    public_id = models.CharField(max_length=32, unique=True)
    secret_hash = models.CharField(max_length=64)
    group = models.ForeignKey(Group, null=True, blank=True, on_delete=models.PROTECT)
    max_uses = models.PositiveIntegerField(default=1)
    used = models.PositiveIntegerField(default=0)
    # PCs enrolled by it wait until an operator accepts them.
    needs_acceptance = models.BooleanField(default=False)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=200)

    class Meta:
        ordering = ["-id"]
        constraints = [
            CheckConstraint(
                condition=Q(used__lte=F("max_uses")), name="a_token_is_not_used_too_often"
            ),
        ]

    def __str__(self) -> str:
        return f"enrolment token {self.public_id}"


class ApiToken(models.Model):
    """A member of staff's token for programs; its rights are what the owner may do now."""

    public_id = models.CharField(max_length=32, unique=True)
    secret_hash = models.CharField(max_length=64)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=100, blank=True, default="")
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"API token {self.public_id}"


class ServerIdentity(models.Model):
    """Who this server is to its agents: a single row, made when first needed."""

    server_id = models.UUIDField(default=new_id)
    # Raised by a restore, so that agents refuse what an older copy of the database still holds.
    epoch = models.PositiveIntegerField(default=1)
    public_key = models.BinaryField()
    # The private key, sealed under the pepper: a copy of the database alone signs nothing.
    sealed_key = models.BinaryField()

    class Meta:
        constraints = [
            CheckConstraint(condition=Q(pk=1), name="one_server_identity"),
        ]

    def __str__(self) -> str:
        return str(self.server_id)
