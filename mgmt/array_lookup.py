"""Lookup `any_of`: like `in`, with all values in one parameter.

Pages of many pipes filter by hundreds of ids, several times a page. Django and psycopg take longer to write a
placeholder for each of them than Postgres takes to find their rows.
"""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Lookup
from django.db.models.sql.compiler import SQLCompiler


class AnyOf(Lookup):
    """`field = ANY(array)`. The right side is an iterable of values."""

    lookup_name = "any_of"

    def get_prep_lookup(self) -> list[Any]:
        """Return the values as a list."""
        return list(self.rhs)

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        """Return the condition."""
        field, of_field = self.process_lhs(compiler, connection)
        return f"{field} = ANY(%s)", (*of_field, self.rhs)
