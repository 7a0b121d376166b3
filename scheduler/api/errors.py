"""Refusals of the scheduler as the errors of HTTP, with the field to blame."""

from rest_framework import exceptions

from scheduler.api.problems import Conflict
from scheduler.public import (
    ContentionError,
    DependencyError,
    NoSuchTaskError,
    OrderError,
    PayloadError,
    TaskStateError,
    UnknownKindError,
)
from scheduler.rules.cron import CronError
from scheduler.rules.texts import TextError
from scheduler.rules.timing import UnusableCronError
from scheduler.rules.zones import ZoneError

FIELDS: dict[type[Exception], str] = {
    CronError: "cron",
    ZoneError: "tz",
    DependencyError: "depends_on",
    PayloadError: "input",
    UnknownKindError: "kind",
}


def as_api_error(error: Exception) -> Exception:
    """Return the error that answers a refusal: 400, 404 or 409; any other error as it is."""
    field = error.field if isinstance(error, OrderError) else FIELDS.get(type(error))
    if field is not None:
        return exceptions.ValidationError({field: [str(error)]})
    if isinstance(error, TextError):
        return exceptions.ValidationError(str(error))
    if isinstance(error, NoSuchTaskError):
        return exceptions.NotFound()
    if isinstance(error, (TaskStateError, ContentionError, UnusableCronError)):
        return Conflict(str(error))
    return error
