"""Sample events of a schema, for the snippets of the console. Pure."""

import json
from copy import copy
from typing import Any, Final

from dataplane.schemas.avro import NO_DEFAULT, AvroType, tree_of
from dataplane.schemas.types import SchemaType
from dataplane.spec.schema import definition_name

MAX_LEVELS: Final = 8  # a schema that refers to itself gets no deeper sample
MAX_VALUES: Final = 1_000
_CHARS: Final = 64  # of a text that count as one value
_UUID: Final = "0192f0c1-2d3e-7abc-8def-0123456789ab"  # version 7, of October 2024
_LOGICAL: Final[dict[str, Any]] = {
    "uuid": _UUID,
    "time-uuid": _UUID,
    "date": "2026-01-31",
    "time-millis": "12:30:00.000",
    "time-micros": "12:30:00.000",
    "timestamp-millis": "2026-01-31T12:30:00Z",
    "timestamp-micros": "2026-01-31T12:30:00Z",
    "timestamp-nanos": "2026-01-31T12:30:00Z",
    "local-timestamp-millis": "2026-01-31T12:30:00",
    "local-timestamp-micros": "2026-01-31T12:30:00",
    "local-timestamp-nanos": "2026-01-31T12:30:00",
    "decimal": "0",
}
_AVRO: Final[dict[str, Any]] = {
    "null": None,
    "boolean": True,
    "int": 1,
    "long": 1,
    "float": 1.5,
    "double": 1.5,
    "string": "text",
    "bytes": "text",
    "array": [],
    "map": {},
}
_JSON: Final[dict[str, Any]] = {
    "null": None,
    "boolean": True,
    "integer": 1,
    "number": 1.5,
    "array": [],
}
_FORMATS: Final = {
    "uuid": _UUID,
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:30:00Z",
    "time": "12:30:00Z",
    "duration": "PT1H",
    "email": "alice@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uri-reference": "/a",
    "json-pointer": "/a",
}


class SampleTooLargeError(ValueError):
    """An event with all required fields of a schema has more than MAX_VALUES values, or text of that size."""


def sample_event(kind: str, document: str) -> Any:
    """Return an event that fits the whole schema `document`, without its optional fields.

    A sample of a JSON Schema with patterns, bounds or combinations of schemas may not fit, and needs editing.

    Raises SampleTooLargeError: types that refer to each other several times grow exponentially.
    """
    if kind == SchemaType.AVRO:
        return _Sampler().of_avro(tree_of(document), MAX_LEVELS)
    schema = json.loads(document)
    return _Sampler(schema).of_json(schema, MAX_LEVELS)


class _Sampler:
    """One sample. `root`: the whole JSON Schema."""

    def __init__(self, root: Any = None) -> None:
        self._root = root
        self._left = MAX_VALUES

    def of_avro(self, node: AvroType, levels: int) -> Any:
        self._count()
        if node.logical and node.logical.name in _LOGICAL:
            return _LOGICAL[node.logical.name]
        made: Any
        match node.kind:
            case "union":
                is_optional = levels == 0 or any(one.kind == "null" for one in node.branches)
                made = None if is_optional else self.of_avro(node.branches[0], levels)
            case "record":
                needed = [one for one in node.fields if one.default is NO_DEFAULT and levels]
                made = {one.name: self.of_avro(one.type, levels - 1) for one in needed}
                if node.logical and "currency" in made:
                    made["currency"] = "EUR"
            case "enum":
                made = node.symbols[0]
            case "fixed":
                self._count(node.size // _CHARS)
                made = "0" * node.size
            case _:
                made = copy(_AVRO[node.kind])
        return made

    def of_json(self, schema: Any, levels: int) -> Any:
        self._count()
        if not isinstance(schema, dict) or levels == 0:
            return {}
        if "$ref" in schema:
            name = definition_name(str(schema["$ref"]))
            return self.of_json(self._root.get("$defs", {}).get(name, {}), levels - 1)
        stated = [schema[key] for key in ("const", "default") if key in schema]
        stated += [one for key in ("examples", "enum") for one in schema.get(key, [])]
        if not stated:
            return self._of_kind(schema, levels)
        self._count(len(json.dumps(stated[0])) // _CHARS)
        return stated[0]

    def _of_kind(self, schema: Any, levels: int) -> Any:
        kinds = schema.get("type", "object")
        kind = kinds if isinstance(kinds, str) else next((one for one in kinds if one != "null"), "null")
        made: Any
        match kind:
            case "object":
                fields = schema.get("properties", {})
                made = {name: self.of_json(fields.get(name, {}), levels - 1) for name in schema.get("required", [])}
            case "string":
                made = _FORMATS.get(schema.get("format", ""), "text")
            case "integer" | "number":
                made = schema.get("minimum", _JSON[kind])
            case _:
                made = copy(_JSON[kind])
        return made

    def _count(self, values: int = 1) -> None:
        self._left -= values
        if self._left < 0:
            raise SampleTooLargeError
