"""Typed columns of lake tables in Spark: `event`, `event_schema` and `event_error`, computed from the body."""

from collections.abc import Callable
from typing import Any, Final

from msgspec import UNSET, Struct
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.types import StructType

from dataplane.plan.typed_row import ColumnsSchema, event_columns
from dataplane.schemas.columns import field_of
from dataplane.schemas.types import SchemaRejectedError
from dataplane.spec import ColumnsEncoding, LakeDestination
from dataplane.tables.records import RegisteredSchema

TYPED: Final = ("event", "event_schema", "event_error")


class UntypableError(Exception):
    """The table can have no typed columns now: their schema is missing, or cannot be stored in columns."""


class TypedColumns(Struct, frozen=True):
    """Typed columns of one table. Spark's workers compile the schema once each.

    held: type of the table's column `event` as JSON, `null` if it has none
    """

    schema: ColumnsSchema
    held: str = "null"

    def of_table(self, table: DataFrame) -> "TypedColumns":
        """Return the columns for a table that exists: it keeps those that it has."""
        found = {field.name: field.dataType for field in table.schema.fields}
        held = found["event"].json() if "event" in found else "null"
        return TypedColumns(self.schema, held)

    def columns(self) -> list[Column]:
        """Return the columns, from Kafka's `value`. Raises UntypableError for a schema that no table can have."""
        try:
            event = event_columns(self.schema, self.held).type
        except SchemaRejectedError as exc:
            raise UntypableError(f"{self.schema.name}: {exc}") from exc
        kinds = zip(TYPED, (event, "string", "string"), strict=True)
        row = StructType.fromJson({"type": "struct", "fields": [field_of(name, kind) for name, kind in kinds]})
        # Arrow would convert times by way of pandas, which has another range and another precision.
        typed = F.udf(_Read(self), row, useArrow=False)(F.col("value"))
        return [typed[name].alias(name) for name in TYPED]


class _Read(Struct, frozen=True):
    """Function of Spark's workers."""

    columns: TypedColumns

    def __call__(self, value: Any) -> tuple[Any, str, str | None]:
        return event_columns(self.columns.schema, self.columns.held)(bytes(value or b""))


def typed_columns_of(
    to: LakeDestination, find: Callable[[ColumnsEncoding], RegisteredSchema | None]
) -> TypedColumns | None:
    """Return the typed columns of a lake destination; None if it has none.

    Raises UntypableError if `find` returns no schema for its encoding.
    """
    if to.encoding is UNSET:
        return None
    name = f"{to.encoding.subject}@{to.encoding.version}"
    schema = find(to.encoding)
    if schema is None:
        raise UntypableError(f"needs the schema {name}, which is not among the control records")
    return TypedColumns(ColumnsSchema(name, schema.document))
