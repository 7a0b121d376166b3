"""Fields that say exactly what they take and give."""

from datetime import UTC, datetime, timedelta
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from scheduler.rules.durations import DurationError, parse_duration
from scheduler.rules.texts import problem_of
from scheduler.rules.timing import LATEST


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


class CleanText(StrictText):
    """Text as it is typed, without characters that cannot be stored or shown."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        """Return the text; refuse NUL, surrogates and control characters by position."""
        problem = problem_of(data) if isinstance(data, str) else None
        if problem:
            raise serializers.ValidationError(problem)
        return super().to_internal_value(data)


@extend_schema_field(OpenApiTypes.DATETIME)
class Instant(StrictText):
    """A date-time with its offset; without one it would mean another instant to each reader."""

    def to_internal_value(self, data: Any) -> datetime:  # type: ignore[override]  # a text comes in, an instant goes on
        """Return the instant in UTC."""
        text = super().to_internal_value(data)
        try:
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is None or moment > LATEST:
                raise ValueError(text)
            return moment.astimezone(UTC)
        except (ValueError, OverflowError):
            raise serializers.ValidationError(
                "write a date-time with its offset, such as 2026-12-01T09:00:00Z"
            ) from None


@extend_schema_field(OpenApiTypes.STR)
class Delay(serializers.Field):  # type: ignore[type-arg]  # not generic at run time
    """How long from now: a duration such as `5m`, or seconds as a number."""

    def to_internal_value(self, data: Any) -> timedelta:
        """Return the delay."""
        try:
            if isinstance(data, str):
                return parse_duration(data)
            if isinstance(data, bool) or not isinstance(data, (int, float)):
                raise TypeError
            return timedelta(seconds=data)
        except DurationError as error:
            raise serializers.ValidationError(str(error)) from None
        except (TypeError, ValueError, OverflowError):
            raise serializers.ValidationError(
                "write a duration such as 5m, or seconds as a number"
            ) from None

    def to_representation(self, value: timedelta) -> float:
        """Return the seconds."""
        return value.total_seconds()
