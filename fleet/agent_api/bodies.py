"""What agents send: JSON in UTF-8 as it is, within a size, with whatever texts a PC has."""

from http import HTTPStatus

from django.http import HttpRequest
from rest_framework.exceptions import APIException, ParseError, UnsupportedMediaType

from scheduler.api.strict import CHARSETS
from scheduler.rules import strict_json

MAX_EXCHANGE = 4 * 1024 * 1024
MAX_ENROLMENT = 8 * 1024
# An outbox of four mebibytes of the smallest results has so many values.
MAX_VALUES = 500_000


class TooLarge(APIException):
    """The body has more bytes than are read."""

    status_code = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    default_code = "too_large"


def read_body(request: HttpRequest, *, max_bytes: int) -> object:
    """Return the JSON value of the body; raise what is wrong with it.

    That nothing is compressed and that the length is told, the site asks of every request. Texts
    pass as they are: they are cleaned one by one.
    """
    _require_plain_json(request)
    data = request.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise TooLarge(f"at most {max_bytes} bytes are taken")
    try:
        return strict_json.loads(data, max_bytes=max_bytes, max_nodes=MAX_VALUES, any_text=True)
    except strict_json.StrictJSONError as error:
        raise ParseError(str(error)) from error


def length_of(request: HttpRequest) -> int:
    """Return how many bytes the sender announces, 0 where it does not say."""
    text = request.META.get("CONTENT_LENGTH") or "0"
    return int(text) if text.isdigit() and len(text) < 12 else 0  # noqa: PLR2004  # a terabyte


def _require_plain_json(request: HttpRequest) -> None:
    kind = request.content_type or ""
    if kind.lower() != "application/json":
        raise UnsupportedMediaType(kind, detail="send application/json")
    charset = (request.content_params or {}).get("charset", "")
    if charset.lower() not in CHARSETS:
        raise UnsupportedMediaType(kind, detail="send JSON in UTF-8")
