"""Rows that change in their own ways, written each by one short statement.

The ORM's `bulk_update` says that as one statement of a CASE per column, which takes it longer to
write than the database to run.
"""

from collections.abc import Collection, Sequence

from django.db import connection
from django.db.models import Field, Model


def update_each(rows: Collection[Model], fields: Sequence[str]) -> None:
    """Write these fields of each row, as they are on the instance, to the row of its key.

    Whoever calls it has locked the rows.
    """
    if not rows:
        return
    meta = next(iter(rows))._meta  # noqa: SLF001  # public, whatever its name says
    columns = [field for name in fields if isinstance(field := meta.get_field(name), Field)]
    key = meta.pk
    assert isinstance(key, Field)
    names = ", ".join(f'"{field.column}" = %s' for field in columns)
    statement = f'UPDATE "{meta.db_table}" SET {names} WHERE "{key.column}" = %s'  # noqa: S608  # names of this program
    values = [
        [
            field.get_db_prep_save(getattr(row, field.attname), connection)
            for field in (*columns, key)
        ]
        for row in rows
    ]
    with connection.cursor() as cursor:
        cursor.executemany(statement, values)
