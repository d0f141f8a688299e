"""Neutral model of a typed client: the event classes of several subjects, independent of schema and language. Pure."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

MILLIS: Final = 3  # digits after the second
MICROS: Final = 6
NANOS: Final = 9
INT_RANGE: Final = (-(1 << 31), (1 << 31) - 1)
LONG_RANGE: Final = (-(1 << 63), (1 << 63) - 1)


class ClientError(Exception):
    """A client cannot be generated. The text names the subject, or what was given, and what is needed."""


class ScalarKind(StrEnum):
    """Kinds of values without parts. A number is a double that is not NaN or infinite; JSON is any JSON."""

    NULL = "null"
    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    NUMBER = "number"
    TEXT = "text"
    BYTES = "bytes"
    UUID = "uuid"
    TIME_UUID = "time-uuid"
    DECIMAL = "decimal"
    TIMESTAMP = "timestamp"
    LOCAL_TIMESTAMP = "local-timestamp"
    DATE = "date"
    TIME = "time"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class ScalarType:
    """Type of a value without parts.

    low, high: of whole numbers, both included, or number of characters or bytes; None is unlimited
    precision, scale: of decimals
    digits: after the second, of times
    """

    kind: ScalarKind
    low: int | None = None
    high: int | None = None
    precision: int = 0
    scale: int = 0
    digits: int = 0


@dataclass(frozen=True, slots=True)
class EnumRef:
    """Use of an enum, by the name of its class."""

    name: str


@dataclass(frozen=True, slots=True)
class RecordRef:
    """Use of a record, by the name of its class."""

    name: str


@dataclass(frozen=True, slots=True)
class ListType:
    """List of values of one type."""

    item: "FieldType"
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class MapType:
    """Values of one type by text."""

    item: "FieldType"


@dataclass(frozen=True, slots=True)
class NullableType:
    """Value of a type, or null."""

    item: "FieldType"


@dataclass(frozen=True, slots=True)
class Branch:
    """Type of a union, and the name that stands for it in JSON where the value could be of another branch."""

    label: str
    type: "FieldType"


@dataclass(frozen=True, slots=True)
class UnionType:
    """Value of one of several types, none of which is null."""

    branches: tuple[Branch, ...]


FieldType = ScalarType | EnumRef | RecordRef | ListType | MapType | NullableType | UnionType


@dataclass(frozen=True, slots=True)
class RecordField:
    """Field of a record.

    is_optional: omitted from the JSON if it has no value; it is then nullable in code
    """

    name: str
    type: FieldType
    is_optional: bool = False
    doc: str = ""


@dataclass(slots=True)
class RecordClass:
    """Class of a record. `name`: PascalCase, unique in the client."""

    name: str
    doc: str = ""
    fields: tuple[RecordField, ...] = ()


@dataclass(frozen=True, slots=True)
class EnumClass:
    """Class of an enum. `name`: PascalCase, unique in the client."""

    name: str
    symbols: tuple[str, ...]
    doc: str = ""


@dataclass(frozen=True, slots=True)
class EventClass:
    """Record whose values are sent as events.

    event_type: `type` of its CloudEvents
    schema: version that it was generated from, as `<subject>@<number>`
    id_field: field that identifies an event; "" if it has none and each event gets a new id
    """

    event_type: str
    schema: str
    record: str
    id_field: str = ""


@dataclass(slots=True)
class ClientModel:
    """Everything that a client is generated from, in a fixed order."""

    records: list[RecordClass] = field(default_factory=list)
    enums: list[EnumClass] = field(default_factory=list)
    events: list[EventClass] = field(default_factory=list)

    def record(self, name: str) -> RecordClass:
        """Return a record by the name of its class. Raises KeyError."""
        for one in self.records:
            if one.name == name:
                return one
        raise KeyError(name)

    def event_of(self, record: str) -> EventClass | None:
        """Return the event of a record; None if it is only a part of events."""
        return next((one for one in self.events if one.record == record), None)
