"""Typed columns of events with an Avro schema: a column type of Spark, and the values of its rows. Pure.

Column types are in the form of Spark's `StructType.jsonValue`, so that this package needs no Spark. The mapping is that
of Spark's own reader of Avro, and exact: see docs/decisions/0489.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from dataplane.schemas.avro import AvroType, LogicalType
from dataplane.schemas.to_values import logical_value
from dataplane.schemas.tree_compiler import TreeCompiler
from dataplane.schemas.types import SchemaRejectedError
from dataplane.schemas.wire import datum_to_json

MAX_COLUMNS: Final = 1_000  # types below the column, with each record expanded where it is used
MAX_PRECISION: Final = 38  # digits of Spark's decimals
_PRIMITIVES: Final = {
    "null": "string",  # always null: neither Parquet nor Delta can store a column without a type
    "boolean": "boolean",
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "enum": "string",
    "bytes": "binary",
    "fixed": "binary",
}
# Others (times of day, timestamp-nanos, duration) have no type of Delta: the column has the type below the logical one.
# Local times are text, because timestamp_ntz needs a feature of the table that many readers of Delta lack.
_LOGICAL: Final = {
    "uuid": "string",
    "time-uuid": "string",
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "string",
    "local-timestamp-micros": "string",
    "local-timestamp-nanos": "string",
}
ColumnType = str | dict[str, Any]
ToValue = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """Column for the values of a type.

    type:     column type of Spark, as JSON
    to_value: turns what the encoder of Avro takes into the value of a row; None if it is the same
    size:     number of types in it
    """

    type: ColumnType
    to_value: ToValue | None = None
    size: int = 1

    def __call__(self, datum: Any) -> Any:
        """Return the value of a row: an object is a dict by column, times and decimals are Python's."""
        return datum if self.to_value is None else self.to_value(datum)


@lru_cache(maxsize=100)
def column_of(tree: AvroType) -> TypedColumn:
    """Return the column of a schema. Raises SchemaRejectedError if it has too many, or columns that differ in case."""
    return _Compiler().compile(tree)


class _Compiler(TreeCompiler[TypedColumn]):
    """Compiles one schema to a column."""

    def record(self, node: AvroType) -> TypedColumn:
        """Return a struct; as text of JSON if it is empty, which Parquet cannot store."""
        if not node.fields:
            return _as_json(node)
        columns = [(one.name, self.compile(one.type)) for one in node.fields]
        changed = [(name, column.to_value) for name, column in columns if column.to_value is not None]

        def record(datum: dict[str, Any]) -> dict[str, Any]:
            return datum | {name: to_value(datum[name]) for name, to_value in changed}

        return _struct(node, columns, record if changed else None)

    def later(self, node: AvroType, _cell: list[TypedColumn]) -> TypedColumn:
        """Return text of JSON: a struct of Spark cannot contain itself."""
        return _as_json(node)

    def union(self, node: AvroType, branches: Sequence[TypedColumn]) -> TypedColumn:
        """Return the only branch besides null; else a struct with one column for each branch, as Spark's reader has."""
        pairs = [(one, column) for one, column in zip(node.branches, branches, strict=True) if one.kind != "null"]
        if len(pairs) <= 1:
            column = pairs[0][1] if pairs else TypedColumn("string")
            return TypedColumn(column.type, lambda datum: None if datum[1] is None else column(datum[1]), column.size)
        members = {one.branch_name: (_member(one), column) for one, column in pairs}

        def union(datum: tuple[str, Any]) -> dict[str, Any] | None:
            if datum[1] is None:
                return None
            name, column = members[datum[0]]
            return {name: column(datum[1])}

        return _struct(node, list(members.values()), union)

    def array(self, item: TypedColumn) -> TypedColumn:
        """Return an array."""
        kind = {"type": "array", "elementType": item.type, "containsNull": True}
        to_value = item.to_value
        return _sized(kind, None if to_value is None else lambda datum: [to_value(one) for one in datum], item.size)

    def map(self, inner: TypedColumn) -> TypedColumn:
        """Return a map with keys of text."""
        kind = {"type": "map", "keyType": "string", "valueType": inner.type, "valueContainsNull": True}
        to_value = inner.to_value
        convert = None if to_value is None else lambda datum: {key: to_value(one) for key, one in datum.items()}
        return _sized(kind, convert, inner.size)

    def leaf(self, node: AvroType) -> TypedColumn:
        """Return the column of a type without inner types."""
        logical = node.logical
        if logical is not None and logical.name == "decimal":
            return _decimal(logical)
        if logical is None or logical.name not in _LOGICAL:
            return TypedColumn(_PRIMITIVES[node.kind])
        kind = _LOGICAL[logical.name]
        if logical.name.startswith("local"):
            return TypedColumn(kind, lambda datum: logical_value(logical, datum).isoformat())
        if kind == "string":
            return TypedColumn(kind, lambda datum: str(logical_value(logical, datum)))
        return TypedColumn(kind, lambda datum: logical_value(logical, datum))


def _decimal(logical: LogicalType) -> TypedColumn:
    if logical.precision > MAX_PRECISION:
        return TypedColumn("string", lambda datum: format(logical_value(logical, datum), "f"))
    return TypedColumn(f"decimal({logical.precision},{logical.scale})", lambda datum: logical_value(logical, datum))


def _as_json(node: AvroType) -> TypedColumn:
    return TypedColumn("string", lambda datum: datum_to_json(node, datum).decode())


def _member(branch: AvroType) -> str:
    """Return the name of a union's branch, as Spark's reader has it with stable identifiers."""
    return f"member_{(branch.short_name or branch.kind).lower()}"


def _struct(node: AvroType, columns: Sequence[tuple[str, TypedColumn]], to_value: ToValue | None) -> TypedColumn:
    seen: dict[str, str] = {}
    for name, _ in columns:
        if other := seen.get(name.lower()):
            names = f"{other} and {name}" if other != name else f"two of {name}"
            raise SchemaRejectedError("", f"needs columns whose names differ in more than case; {node} has {names}")
        seen[name.lower()] = name
    fields = [field_of(name, column.type) for name, column in columns]
    return _sized({"type": "struct", "fields": fields}, to_value, sum(column.size for _, column in columns))


def _sized(kind: dict[str, Any], to_value: ToValue | None, inner: int) -> TypedColumn:
    if inner >= MAX_COLUMNS:
        raise SchemaRejectedError("", f"needs at most {MAX_COLUMNS} columns, with each record counted where it is used")
    return TypedColumn(kind, to_value, inner + 1)


def field_of(name: str, kind: ColumnType) -> dict[str, Any]:
    """Return a field of a struct, as Spark's JSON has it."""
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}
