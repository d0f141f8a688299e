"""Schemas of typed clients: every kind of value, recursion, unions, and documentation that tries to be code."""

import json
from pathlib import Path
from typing import Any, Final

from dataplane.schemas.parse import parse
from dataplane.schemas.types import SchemaType
from typed_clients.build import EventSchema

# Ends comments and texts of every language, if it is not escaped. Java reads \u002a/ as the end of a comment.
HOSTILE: Final = 'say "hi" \'\'\' """ */ \\u002a/ \\ ${x} `y` \n\r\u2028 #{z} \x07 end'
DECIMAL: Final = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
MONEY: Final = {
    "type": "record",
    "name": "Money",
    "logicalType": "money",
    "fields": [{"name": "amount", "type": DECIMAL}, {"name": "currency", "type": "string"}],
}
TIMES: Final = ("timestamp-millis", "timestamp-micros", "timestamp-nanos", "local-timestamp-micros", "time-micros")
ORDER: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Order",
    "namespace": "com.shop",
    "doc": HOSTILE,
    "fields": [
        {"name": "id", "type": {"type": "string", "logicalType": "time-uuid"}, "doc": HOSTILE},
        {"name": "price", "type": MONEY},
        {"name": "count", "type": "int"},
        {"name": "serial", "type": "long"},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["open", "PAID", "class"]}},
        {"name": "placed_at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
EVERYTHING: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Everything",
    "namespace": "com.shop",
    "fields": [
        {"name": "nothing", "type": "null"},
        {"name": "flag", "type": "boolean"},
        {"name": "small", "type": "int"},
        {"name": "large", "type": "long"},
        {"name": "single", "type": "float"},
        {"name": "double", "type": "double"},
        {"name": "raw", "type": "bytes"},
        {"name": "digest", "type": {"type": "fixed", "name": "Digest", "size": 4}},
        {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "date", "type": {"type": "int", "logicalType": "date"}},
        *({"name": one.replace("-", "_"), "type": {"type": "long", "logicalType": one}} for one in TIMES),
        {"name": "time_millis", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "prices", "type": {"type": "map", "values": DECIMAL}},
        {"name": "either", "type": ["null", "string", "long", {"type": "record", "name": "Left", "fields": [
            {"name": "x", "type": "int"}]}, {"type": "record", "name": "Right", "fields": [
                {"name": "x", "type": "int"}]}]},
        {"name": "maybe", "type": ["string", "null"], "default": "schema's"},
        {"name": "level", "type": "int", "default": 7},
        {"name": "child", "type": ["null", "Everything"], "default": None},
        {"name": "children", "type": {"type": "array", "items": "Everything"}, "default": []},
        # Names that mean something in a language or in the generated code, or differ in case alone.
        *({"name": one, "type": "string", "default": ""} for one in (
            "class", "None", "str", "self", "fields", "type", "func", "default", "this", "constructor", "hashCode",
            "getClass", "codec", "builder", "build", "encode", "value", "orderId", "order_id", "_", "__proto__")),
    ],
}  # fmt: skip
REFUND: Final[dict[str, Any]] = {
    "type": "object",
    "title": "Refund",
    "description": HOSTILE,
    "required": ["refund-id", "amount", "lines", "at"],
    "properties": {
        "refund-id": {"type": "string", "format": "uuid"},
        "amount": {"type": "number"},
        "at": {"type": "string", "format": "date-time"},
        "kind": {"enum": ["full", "part of it", "", "\u00fcber $1"]},
        "count": {"type": "integer", "minimum": 1, "maximum": 10},
        "note": {"type": ["string", "null"], "maxLength": 5},
        "lines": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "object", "properties": {"sku": {"type": "string"}}},
        },
        "extra": {"type": "object", "additionalProperties": {"type": "integer"}},
        "free": {"anyOf": [{"type": "string"}, {"type": "object"}]},
        '$weird name\u00e9"': {"type": "boolean", "description": HOSTILE},
    },
}

# Shapes that few schemas have; each language compiles them.
ODD_JSON: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "a": {"type": ["integer", "null"]},
        "b": {"type": ["string", "integer"]},
        "c": {"enum": [1, "x"]},
        "d": {"type": "array"},
        "e": {"anyOf": [{"type": "null"}, {"type": "string", "format": "uuid"}]},
        "f": {"type": "object"},
        "g": True,
        "h": {"type": "array", "items": {"type": ["object", "null"], "properties": {"z": {"type": "null"}}}},
        "i": {"const": 3},
        "j": {"type": "integer", "minimum": 2.5, "maximum": 1e30},
        "k": {"type": "array", "items": {"enum": ["a", "b"]}},
        "l": {"enum": ["a", None]},
    },
}
ODD_AVRO: Final[dict[str, Any]] = {
    "type": "record",
    "name": "OddAvro",
    "fields": [
        {"name": "u", "type": [
            "null", {"type": "array", "items": "string"}, {"type": "map", "values": "long"}, "bytes",
            {"type": "enum", "name": "E", "symbols": ["a", "A"]}, {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "v", "type": ["string", "int"], "default": "x"},
        {"name": "w", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "x", "type": {"type": "map", "values": ["null", {"type": "array", "items": "int"}]}},
        {"name": "y", "type": ["null"], "default": None},
        {"name": "z", "type": ["null", "bytes"], "default": None},
        {"name": "q", "type": ["null", {"type": "record", "name": "Empty", "fields": []}], "default": None},
        {"name": "d", "type": {"type": "fixed", "name": "Dur", "size": 12, "logicalType": "duration"}},
    ],
}  # fmt: skip


def event_schema(event_type: str, document: Any, kind: SchemaType = SchemaType.AVRO, number: int = 1) -> EventSchema:
    return EventSchema(event_type, f"{event_type}-value", number, parse(kind, json.dumps(document)))


SCHEMAS: Final = (
    event_schema("order", ORDER),
    event_schema("everything", EVERYTHING),
    event_schema("refund", REFUND, SchemaType.JSON),
    event_schema("odd-json", ODD_JSON, SchemaType.JSON),
    event_schema("odd-avro", ODD_AVRO),
)


def write_schemas(folder: Path) -> list[str]:
    """Write the schemas to files; return them as `TYPE=FILE`."""
    found = []
    for one in SCHEMAS:
        file = folder / (one.event_type + (".avsc" if one.schema.type is SchemaType.AVRO else ".json"))
        file.write_text(one.schema.text)
        found.append(f"{one.event_type}={file}")
    return found
