"""The one freeze of the whole fleet."""

from django.db import models
from django.db.models import CheckConstraint, Q


class Freeze(models.Model):
    """A single row that always exists. No row, or one that cannot be read, counts as frozen."""

    is_set = models.BooleanField(default=False)
    # As the operator wrote them; `fleet.rules.freeze` reads them, and what it cannot read freezes.
    starts = models.CharField(max_length=64, blank=True, default="")
    ends = models.CharField(max_length=64, blank=True, default="")
    tz = models.CharField(max_length=100, default="local")
    reason = models.TextField(blank=True, default="")
    set_by = models.CharField(max_length=200, blank=True, default="")
    set_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            CheckConstraint(condition=Q(pk=1), name="one_freeze_for_the_fleet"),
        ]
        permissions = [
            ("set_freeze", "Can freeze and thaw the fleet"),
            ("override_freeze", "Can run a job although the fleet is frozen"),
        ]

    def __str__(self) -> str:
        return "freeze" if self.is_set else "no freeze"
