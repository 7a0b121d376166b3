"""Many rows as the parameters of one statement, on both databases.

The ORM writes a parameter for each value, and a text as long as the rows are many.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from django.db import connection

Value = str | int | datetime | None
# A whole column of values is one parameter.
Param = str | datetime


def table(rows: Sequence[Sequence[Value]], types: Sequence[str]) -> tuple[str, list[Param]]:
    """Return a SELECT of `rows` (at least one) and its parameters.

    Few parameters, and one text for any number of rows, so that the driver prepares it once.
    """
    if connection.vendor == "postgresql":
        arrays = ", ".join(f"%s::{name}[]" for name in types)
        select = f"SELECT * FROM unnest({arrays})"  # noqa: S608  # no value is in the text
        return select, [array(column) for column in zip(*rows, strict=True)]
    columns = ", ".join(f"json_extract(value, '$[{index}]')" for index in range(len(types)))
    select = f"SELECT {columns} FROM json_each(%s)"  # noqa: S608  # no value is in the text
    return select, [json.dumps(rows, default=_text)]


def array(values: Iterable[Value]) -> str:
    """Return an array as PostgreSQL reads it; the driver's own way takes longer than the query."""
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: Value) -> str:
    if isinstance(value, int):
        return str(value)
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return f'"{value.isoformat()}"'
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def adapt(moment: datetime) -> str | datetime:
    """Return a time as its column holds it: on SQLite a text in UTC, as the ORM writes it."""
    return moment if connection.vendor == "postgresql" else _text(moment)


def _text(moment: datetime) -> str:
    return str(moment.astimezone(UTC).replace(tzinfo=None))
