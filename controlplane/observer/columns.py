"""Many rows in one statement: a column is one parameter, an array for `unnest`.

Django's upsert makes a placeholder of each value: five times the time for a busy minute.
"""

from collections.abc import Sequence

from django.db import connection


def execute_in_columns(statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Run it once over all rows, in their order; nothing for none. It has an array parameter for each column."""
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(statement, [list(column) for column in zip(*rows, strict=True)])
