"""Typed columns of an event in a lake table, by a version of a subject of the schema registry. Pure."""

from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from dataplane.schemas.avro import tree_of
from dataplane.schemas.column_fit import Fit, evolved, fit_of
from dataplane.schemas.columns import ColumnType, TypedColumn, column_of
from dataplane.schemas.types import SchemaRejectedError
from dataplane.schemas.wire import json_to_datum

MAX_ERROR: Final = 1_000  # characters; reasons never contain values of the event
MISFITS_SHOWN: Final = 5


class ColumnsSchema(NamedTuple):
    """Schema of a table's typed columns. `name`: `<subject>@<version>`; `document`: the schema, references expanded."""

    name: str
    document: str


class TypedRow(NamedTuple):
    """Values of a row's typed columns.

    event:        the event, an object as a dict by column; None if it does not fit the schema
    event_schema: version that the event was read with, `<subject>@<version>`
    event_error:  why the event or a part of it is not in the columns; None if all of it is
    """

    event: Any
    event_schema: str
    event_error: str | None


class EventColumns:
    """Reader of events for the typed column of a table, which may have held events of other versions. Pure.

    held: type of the column in the table now; None if the table has none yet
    type: type of the column from now on: the columns that it has, and those that the schema adds
    """

    def __init__(self, schema: ColumnsSchema, held: ColumnType | None) -> None:
        """Compile a schema. Raises SchemaRejectedError if it cannot be stored in columns."""
        self._name = schema.name
        self._tree = tree_of(schema.document)
        self._column: TypedColumn = column_of(self._tree)
        self.type: ColumnType = self._column.type if held is None else evolved(held, self._column.type)
        self._fit: Fit | None = fit_of(self._column.type, self.type)

    def __call__(self, body: bytes) -> TypedRow:
        """Return the columns of an event in JSON; an event that does not fit has an error in place of an event."""
        try:
            value = self._column(json_to_datum(self._tree, body))
        except SchemaRejectedError as exc:
            return TypedRow(None, self._name, str(exc)[:MAX_ERROR])
        misfits: list[str] = []
        if self._fit is not None:
            value = self._fit(value, misfits)
        return TypedRow(value, self._name, _joined(misfits))


@lru_cache(maxsize=100)
def event_columns(schema: ColumnsSchema, held: str) -> EventColumns:
    """Return the compiled reader; `held` is the type of the table's column as JSON, `null` if it has none."""
    return EventColumns(schema, msgspec.json.decode(held))


def _joined(misfits: list[str]) -> str | None:
    """Return the first reasons as one text; None without one."""
    more = [f"and {len(misfits) - MISFITS_SHOWN} more"] if len(misfits) > MISFITS_SHOWN else []
    return "; ".join([*misfits[:MISFITS_SHOWN], *more])[:MAX_ERROR] or None
