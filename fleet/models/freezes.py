"""The one freeze of the whole fleet."""

from typing import NamedTuple

from django.db import connection, models
from django.db.models import CheckConstraint, Q, QuerySet

# One row is right, more are a fault; nobody needs to read a third. Read at each hand-out, so the
# ORM does not write it anew each time.
_STORED = """
SELECT id, CAST(is_set AS text), starts, ends, reason, tz FROM fleet_freeze ORDER BY id LIMIT 2
"""
_FLAGS: dict[object, bool] = {"1": True, "true": True, "0": False, "false": False}


class StoredFreeze(NamedTuple):
    """A row as it is stored, unchecked: a bad restore may leave anything in any column."""

    is_set: object
    starts: object
    ends: object
    reason: object
    tz: object


def read_flag(text: object) -> object:
    """The flag that a column cast to text spells; what spells none stays as it is.

    Read as a flag, SQLite's driver makes False of whatever is not 1, and a freeze would be off.
    """
    return _FLAGS.get(text, text)


class FreezeQuerySet(QuerySet["Freeze"]):
    """The question of every gate."""

    def stored(self) -> list[StoredFreeze]:
        """Return the rows as they are, two at most: one query."""
        with connection.cursor() as cursor:
            cursor.execute(_STORED)
            rows = cursor.fetchall()
        # In another row than the one nobody has said anything.
        return [
            StoredFreeze(read_flag(flag) if pk == 1 else None, *rest) for pk, flag, *rest in rows
        ]


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

    objects = FreezeQuerySet.as_manager()

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
