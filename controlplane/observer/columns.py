"""Run one statement over many rows: each column is one parameter, an array for `unnest`.

Django's upsert uses a placeholder per value, which takes five times as long for a busy minute.
"""

from collections.abc import Sequence

from django.db import connection


def execute_in_columns(statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Run the statement once over all rows, in their order; without rows, do nothing.

    statement: SQL with one array parameter for each column of `rows`
    """
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(statement, [list(column) for column in zip(*rows, strict=True)])
