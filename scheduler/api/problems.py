"""Every error as RFC 9457 problem details, with the error of each field under its dotted path."""

import uuid
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import DataError
from django.http import Http404, JsonResponse
from rest_framework import exceptions
from rest_framework.views import set_rollback

MEDIA_TYPE = "application/problem+json"


class Conflict(exceptions.APIException):
    """The request is sound but the state of the thing forbids it."""

    status_code = HTTPStatus.CONFLICT
    default_detail = "This conflicts with the current state."
    default_code = "conflict"


def problem_response(error: Exception, context: dict[str, Any]) -> JsonResponse | None:
    """Return the problem for an error of a DRF view, or None for a fault of ours.

    Always JSON, also where the view itself answers in text or YAML.
    """
    known = _as_api_error(error)
    if known is None:
        return None
    set_rollback()
    response = JsonResponse(problem(known), status=known.status_code, content_type=MEDIA_TYPE)
    wait = getattr(known, "wait", None)
    if wait is not None:
        response["Retry-After"] = str(max(1, round(wait)))
    challenge = getattr(known, "auth_header", None)
    if challenge:
        response["WWW-Authenticate"] = challenge
    return response


def _as_api_error(error: Exception) -> exceptions.APIException | None:
    if isinstance(error, exceptions.APIException):
        return error
    if isinstance(error, Http404):
        return exceptions.NotFound()
    if isinstance(error, PermissionDenied):
        return exceptions.PermissionDenied()
    if isinstance(error, (RecursionError, OverflowError, UnicodeError, DataError)):
        # Input that no check of ours foresaw: still the sender's, never a 500.
        return exceptions.ParseError("a value is outside what can be stored")
    return None


def problem(error: exceptions.APIException) -> dict[str, object]:
    """Return the body: type, title, status, detail, an id to quote, and `errors` by field."""
    status = HTTPStatus(error.status_code)
    errors = [
        {"field": path, "message": message} for path, message in _messages(error.detail, "") if path
    ]
    plain = [message for path, message in _messages(error.detail, "") if not path]
    body: dict[str, object] = {
        "type": "about:blank",
        "title": status.phrase,
        "status": int(status),
        "detail": " ".join(plain) or "Some fields are not right; see errors.",
        "id": uuid.uuid4().hex,
    }
    if errors:
        body["errors"] = errors
    return body


def _messages(detail: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(detail, dict):
        for key, value in detail.items():
            under = path if key == "non_field_errors" else f"{path}.{key}" if path else str(key)
            yield from _messages(value, under)
    elif isinstance(detail, list):
        for index, item in enumerate(detail):
            nested = isinstance(item, (dict, list))
            if nested and not item:
                continue
            yield from _messages(item, f"{path}[{index}]" if nested else path)
    else:
        yield path, str(detail)
