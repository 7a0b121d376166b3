"""What agents send: JSON in UTF-8 as it is, within a size, with whatever texts a PC has."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import IO, Any

from rest_framework.exceptions import APIException, ParseError, UnsupportedMediaType
from rest_framework.parsers import BaseParser

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


class AgentParser(BaseParser):
    """Reads one exchange. Texts pass as they are: they are cleaned one by one."""

    media_type = "application/json"
    max_bytes = MAX_EXCHANGE

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the value of the body; raise what is wrong with it."""
        request = (parser_context or {})["request"]
        encoding = request.headers.get("Content-Encoding", "identity")
        if encoding.strip().lower() != "identity":
            raise UnsupportedMediaType(encoding, detail="nothing compressed is taken")
        if charset_of(media_type or "") not in CHARSETS:
            raise UnsupportedMediaType(media_type or "", detail="send JSON in UTF-8")
        data = stream.read(self.max_bytes + 1)
        if len(data) > self.max_bytes:
            raise TooLarge(f"at most {self.max_bytes} bytes are taken")
        try:
            return strict_json.loads(
                data, max_bytes=self.max_bytes, max_nodes=MAX_VALUES, any_text=True
            )
        except strict_json.StrictJSONError as error:
            raise ParseError(str(error)) from error


class EnrolmentParser(AgentParser):
    """Reads an enrolment."""

    max_bytes = MAX_ENROLMENT


def charset_of(media_type: str) -> str:
    """Return the charset parameter in lower case, empty where there is none."""
    for part in media_type.split(";")[1:]:
        name, _, value = part.strip().partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip('"').lower()
    return ""
