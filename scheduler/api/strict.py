"""The one strict door for JSON: a bounded parser, and a serializer that knows its keys."""

import difflib
from collections.abc import Mapping
from typing import IO, Any

from rest_framework import serializers
from rest_framework.exceptions import ParseError, UnsupportedMediaType, ValidationError
from rest_framework.parsers import BaseParser

from scheduler.rules import strict_json

MAX_BODY_BYTES = 1_048_576
CHARSETS = {"", "utf-8", "utf8"}


class StrictJSONParser(BaseParser):
    """Parse `application/json` in UTF-8 and nothing else; limits of `strict_json` hold."""

    media_type = "application/json"
    max_bytes = MAX_BODY_BYTES

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the value of the body; raise what names the field, or ParseError."""
        charset = _charset(media_type or "")
        if charset not in CHARSETS:
            raise UnsupportedMediaType(media_type or "", detail="send JSON in UTF-8")
        data = stream.read(self.max_bytes + 1)
        try:
            return strict_json.loads(data, max_bytes=self.max_bytes)
        except strict_json.StrictJSONError as error:
            if error.path:
                raise ValidationError({error.path: [error.problem]}) from error
            raise ParseError(str(error)) from error


def _charset(media_type: str) -> str:
    for part in media_type.split(";")[1:]:
        name, _, value = part.strip().partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip('"').lower()
    return ""


class StrictSerializer(serializers.Serializer[Any]):
    """A serializer that refuses keys it does not know, by their full dotted path."""

    def to_internal_value(self, data: object) -> Any:
        """Return the validated values; raise ValidationError that names each unknown key."""
        if isinstance(data, Mapping):
            known = {name for name, field in self.fields.items() if not field.read_only}
            unknown = {
                str(key): [unknown_key(str(key), known)] for key in data if str(key) not in known
            }
            if unknown:
                raise serializers.ValidationError(unknown)
        return super().to_internal_value(data)


def unknown_key(key: str, known: set[str]) -> str:
    """Return the sentence for a key that is not among `known`."""
    near = difflib.get_close_matches(key, known, n=1)
    if near:
        return f'unknown key; did you mean "{near[0]}"?'
    allowed = ", ".join(sorted(known)) or "none"
    return f"unknown key; allowed here: {allowed}"
