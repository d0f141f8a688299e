"""Event classes from Avro schemas. Pure.

Values are those of JSON at ingest: decimals and times are text there, bytes one character for each byte.
"""

from typing import Final

from dataplane.schemas.avro import NO_DEFAULT, AvroField, AvroType, document_of
from typed_clients.identifiers import ClassNames
from typed_clients.model import (
    INT_RANGE,
    LONG_RANGE,
    MICROS,
    MILLIS,
    NANOS,
    Branch,
    ClientModel,
    EnumClass,
    EnumRef,
    FieldType,
    ListType,
    MapType,
    NullableType,
    RecordClass,
    RecordField,
    RecordRef,
    ScalarKind,
    ScalarType,
    UnionType,
)

CURRENCY_LETTERS: Final = 3
_PLAIN: Final = {
    "null": ScalarType(ScalarKind.NULL),
    "boolean": ScalarType(ScalarKind.BOOLEAN),
    "int": ScalarType(ScalarKind.INT, *INT_RANGE),
    "long": ScalarType(ScalarKind.LONG, *LONG_RANGE),
    "float": ScalarType(ScalarKind.FLOAT),
    "double": ScalarType(ScalarKind.DOUBLE),
    "bytes": ScalarType(ScalarKind.BYTES),
    "string": ScalarType(ScalarKind.TEXT),
}
_DIGITS: Final = {"millis": MILLIS, "micros": MICROS, "nanos": NANOS}
_LOGICAL: Final = {
    "uuid": ScalarType(ScalarKind.UUID),
    "time-uuid": ScalarType(ScalarKind.TIME_UUID),
    "date": ScalarType(ScalarKind.DATE),
    **{f"time-{unit}": ScalarType(ScalarKind.TIME, digits=_DIGITS[unit]) for unit in ("millis", "micros")},
    **{f"timestamp-{unit}": ScalarType(ScalarKind.TIMESTAMP, digits=digits) for unit, digits in _DIGITS.items()},
    **{
        f"local-timestamp-{unit}": ScalarType(ScalarKind.LOCAL_TIMESTAMP, digits=digits)
        for unit, digits in _DIGITS.items()
    },
}


class AvroClasses:
    """Adds the classes of Avro schemas to a model; a named type that several schemas define equally is one class."""

    def __init__(self, model: ClientModel, names: ClassNames) -> None:
        self._model = model
        self._names = names
        self._known: dict[tuple[str, str], str] = {}  # full name and whole definition -> name of the class

    def type_of(self, node: AvroType) -> FieldType:  # noqa: PLR0911 one for each kind
        """Return the type of a node, and add the classes that it needs."""
        match node.kind:
            case "record":
                return RecordRef(self._record(node))
            case "enum":
                return EnumRef(self._enum(node))
            case "array":
                return ListType(self.type_of(node.inner))
            case "map":
                return MapType(self.type_of(node.inner))
            case "union":
                return self._union(node)
        if node.logical is not None:
            if node.logical.name == "decimal":
                return ScalarType(ScalarKind.DECIMAL, precision=node.logical.precision, scale=node.logical.scale)
            if node.logical.name in _LOGICAL:
                return _LOGICAL[node.logical.name]
        return ScalarType(ScalarKind.BYTES, node.size, node.size) if node.kind == "fixed" else _PLAIN[node.kind]

    def _union(self, node: AvroType) -> FieldType:
        inner = [one for one in node.branches if one.kind != "null"]
        if not inner:
            return _PLAIN["null"]
        found: FieldType
        if len(inner) == 1:
            found = self.type_of(inner[0])
        else:
            found = UnionType(tuple(Branch(one.branch_name, self.type_of(one)) for one in inner))
        return found if len(inner) == len(node.branches) else NullableType(found)

    def _record(self, node: AvroType) -> str:
        key = node.name, document_of(node)
        if key not in self._known:
            record = RecordClass(self._names.take(node.short_name), node.doc or "")
            self._known[key] = record.name  # before its fields: a record may contain itself
            self._model.records.append(record)
            record.fields = tuple(self._field(one) for one in node.fields)
            if node.logical is not None and node.logical.name == "money":
                record.fields = tuple(map(_as_currency, record.fields))
        return self._known[key]

    def _field(self, one: AvroField) -> RecordField:
        kind = self.type_of(one.type)
        # A field that is null is sent as null where the default is another value; all others without a value are
        # omitted, and the schema's default applies.
        is_optional = one.default is not NO_DEFAULT and not (isinstance(kind, NullableType) and one.default is not None)
        return RecordField(one.name, kind, is_optional, one.doc or "")

    def _enum(self, node: AvroType) -> str:
        key = node.name, document_of(node)
        if key not in self._known:
            self._known[key] = self._names.take(node.short_name)
            self._model.enums.append(EnumClass(self._known[key], node.symbols, node.doc or ""))
        return self._known[key]


def _as_currency(field: RecordField) -> RecordField:
    if field.name != "currency" or field.type != _PLAIN["string"]:
        return field
    kind = ScalarType(ScalarKind.TEXT, CURRENCY_LETTERS, CURRENCY_LETTERS)
    return RecordField(field.name, kind, field.is_optional, field.doc)
