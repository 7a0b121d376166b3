"""Fields that say exactly what they take and give."""

from datetime import UTC
from typing import Any

from rest_framework import serializers


class Moment(serializers.DateTimeField):
    """An instant in UTC, whatever zone the viewer's pages are shown in."""

    def __init__(self, **options: Any) -> None:
        super().__init__(default_timezone=UTC, **options)


class StrictText(serializers.CharField):
    """Text alone: a number or a truth value is not turned into text."""

    def to_internal_value(self, data: Any) -> str:
        """Return the text; refuse other JSON types."""
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


class StrictFlag(serializers.BooleanField):
    """`true` or `false` alone, not the words and numbers that HTML forms send."""

    def to_internal_value(self, data: Any) -> bool:
        """Return the truth value; refuse other JSON types."""
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class StrictNumber(serializers.IntegerField):
    """A whole number alone: not `"1"`, `1.0` or `true`, and no digits of other scripts."""

    def to_internal_value(self, data: Any) -> int:
        """Return the number; refuse other JSON types."""
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return int(super().to_internal_value(data))
