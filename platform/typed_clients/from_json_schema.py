"""Event classes from JSON Schema documents. Pure.

Ingest checks every keyword; classes cover the common ones: types, required fields, lengths, ranges, formats, enums and
`$ref`. A part that combines schemas in another manner is any JSON in the class.
"""

from collections.abc import Mapping
from typing import Any, Final

from dataplane.spec.schema import definition_name
from typed_clients.identifiers import ClassNames, pascal
from typed_clients.model import (
    LONG_RANGE,
    MICROS,
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
)

_ANY: Final = ScalarType(ScalarKind.JSON)
_COMBINES: Final = ("allOf", "anyOf", "oneOf", "not", "if", "prefixItems", "patternProperties", "const")
_FORMATS: Final = {
    "uuid": ScalarType(ScalarKind.UUID),
    "date": ScalarType(ScalarKind.DATE),
    "date-time": ScalarType(ScalarKind.TIMESTAMP, digits=MICROS),
}


class JsonSchemaClasses:
    """Adds the classes of one document to a model."""

    def __init__(self, document: Mapping[str, Any], model: ClientModel, names: ClassNames) -> None:
        self._defs: Mapping[str, Any] = document.get("$defs", {})
        self._document = document
        self._model = model
        self._names = names
        self._known: dict[str, FieldType] = {}  # types by the name of their definition

    def root(self, name: str) -> FieldType:
        """Return the type of the document, whose class is named by its title, or else by `name`."""
        return self._type(self._document, str(self._document.get("title") or name))

    def _type(self, schema: Any, name: str) -> FieldType:  # noqa: PLR0911 one for each kind
        if not isinstance(schema, dict):
            return _ANY
        if "$ref" in schema:
            return self._referenced(schema)
        if (inner := _nullable_part(schema)) is not None:
            found = self._type(inner, name)
            return found if isinstance(found, NullableType) or found == _ANY else NullableType(found)
        if any(word in schema for word in _COMBINES):
            return _ANY
        if "enum" in schema:
            return self._enum(schema, name)
        match schema.get("type"):
            case "object":
                return self._object(schema, name)
            case "array":
                item = self._type(schema.get("items"), f"{name} item")
                return ListType(item, schema.get("minItems"), schema.get("maxItems"))
        return _scalar(schema)

    def _referenced(self, schema: Mapping[str, Any]) -> FieldType:
        if set(schema) - {"$ref", "title", "description", "$comment"}:
            return _ANY  # it combines the definition with more keywords
        target = definition_name(schema["$ref"])
        if target is None:
            return _ANY
        if target not in self._known:
            self._known[target] = self._type(self._defs.get(target), target)
        return self._known[target]

    def _object(self, schema: Mapping[str, Any], name: str) -> FieldType:
        required = schema.get("required", ())
        properties = dict(schema.get("properties", {})) | {
            one: True for one in required if one not in schema.get("properties", {})
        }
        if not properties:
            return MapType(self._type(schema.get("additionalProperties"), f"{name} value"))
        record = RecordClass(self._names.take(name), str(schema.get("description", "")))
        self._model.records.append(record)
        record.fields = tuple(
            RecordField(
                one,
                self._type(inner, f"{record.name} {one}"),
                one not in required,
                str(inner.get("description", "")) if isinstance(inner, dict) else "",
            )
            for one, inner in properties.items()
        )
        return RecordRef(record.name)

    def _enum(self, schema: Mapping[str, Any], name: str) -> FieldType:
        symbols = tuple(schema["enum"])
        if not symbols or not all(isinstance(one, str) for one in symbols) or schema.get("type", "string") != "string":
            return _ANY
        enum = EnumClass(self._names.take(name), tuple(dict.fromkeys(symbols)), str(schema.get("description", "")))
        self._model.enums.append(enum)
        return EnumRef(enum.name)


def _nullable_part(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return a schema without null, if it is of one type or null; else None."""
    kinds = schema.get("type")
    if isinstance(kinds, list) and len(kinds) == 2 and "null" in kinds and "enum" not in schema:
        return {**schema, "type": next((one for one in kinds if one != "null"), "null")}
    for word in ("anyOf", "oneOf"):
        branches = schema.get(word)
        if isinstance(branches, list) and len(branches) == 2 and {"type": "null"} in branches and "type" not in schema:
            return next((one for one in branches if one != {"type": "null"}), None)
    return None


def _scalar(schema: Mapping[str, Any]) -> FieldType:  # noqa: PLR0911 one for each kind
    match schema.get("type"):
        case "string":
            if schema.get("format") in _FORMATS:
                return _FORMATS[schema["format"]]
            return ScalarType(ScalarKind.TEXT, schema.get("minLength"), schema.get("maxLength"))
        case "integer":
            return ScalarType(ScalarKind.LONG, *_range(schema))
        case "number":
            return ScalarType(ScalarKind.NUMBER)
        case "boolean":
            return ScalarType(ScalarKind.BOOLEAN)
        case "null":
            return ScalarType(ScalarKind.NULL)
    return _ANY


def _range(schema: Mapping[str, Any]) -> tuple[int, int]:
    low, high = LONG_RANGE
    least, most = schema.get("minimum"), schema.get("maximum")
    if isinstance(least, int):
        low = min(max(low, least), high)
    if isinstance(most, int):
        high = max(min(high, most), low)
    return low, high


def class_name_of(subject: str) -> str:
    """Return a name for the class of a subject's events: `orders-value` gives `Orders`."""
    return pascal(subject.removesuffix("-value"))
