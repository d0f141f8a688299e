"""Shapes of events: the fields and kinds of values of JSON that a schema allows, for checks before any event. Pure.

A shape allows at least what its schema does: where a schema says too little, or is deeper or larger than is followed,
the shape is ANY. So a check against a shape refuses nothing that an event could have.
"""

import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from msgspec import Struct

from dataplane.schemas.avro import AvroType
from dataplane.schemas.types import ParsedSchema, SchemaType
from dataplane.schemas.wire import avro_tree
from dataplane.spec.schema import expanded

OBJECT: Final = "object"
ARRAY: Final = "array"
TEXT: Final = "text"
NUMBER: Final = "number"
BOOLEAN: Final = "boolean"
NULL: Final = "null"
KINDS: Final = frozenset((OBJECT, ARRAY, TEXT, NUMBER, BOOLEAN, NULL))
EACH: Final = "*"
MAX_DEPTH: Final = 12  # levels of a schema that are followed
MAX_PARTS: Final = 20_000  # parts of all schemas of one check

_AVRO_KINDS: Final[Mapping[str, str]] = {
    "null": NULL, "boolean": BOOLEAN, "int": NUMBER, "long": NUMBER,
    "bytes": TEXT, "string": TEXT, "enum": TEXT, "fixed": TEXT,
}  # fmt: skip
_JSON_KINDS: Final[Mapping[str, str]] = {
    "array": ARRAY, "boolean": BOOLEAN, "integer": NUMBER, "null": NULL,
    "number": NUMBER, "object": OBJECT, "string": TEXT,
}  # fmt: skip
# Keywords of JSON Schema that may allow fields which `properties` does not list.
_OPEN_WORDS: Final = ("patternProperties", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "not")


class Shape(Struct, frozen=True):
    """Values of JSON that an event may have at one place.

    fields: of an object, by name; others: shape of its fields that are not listed, None if there are none
    items:  shape of the elements of an array
    is_any: nothing is known, and every path below exists
    """

    kinds: frozenset[str]
    fields: Mapping[str, "Shape"] = {}
    others: "Shape | None" = None
    items: "Shape | None" = None
    is_any: bool = False

    def child(self, segment: str) -> "Shape | None":
        """Return the shape at one segment of a path, a name, an index or `*`; None if no value can be there."""
        if self.is_any:
            return self
        found = []
        if segment == EACH:
            found = [*self.fields.values(), self.others, self.items]
        else:
            found.append(self.fields.get(segment, self.others))
            found.append(self.items if segment.isdecimal() else None)
        return either(one for one in found if one is not None)

    def at(self, segments: Iterable[str]) -> "Shape | None":
        """Return the shape at a path; None if no value can be there."""
        found: Shape | None = self
        for segment in segments:
            found = found.child(segment) if found is not None else None
        return found

    def nearest(self, segment: str) -> str | None:
        """Return the listed field whose name is most like this one; None if none is."""
        return next(iter(get_close_matches(segment, self.fields, 1)), None)

    def put(self, segments: tuple[str, ...], value: "Shape | None") -> "Shape":
        """Return the shape with another one at a path, and objects along it; None removes the field."""
        if self.is_any:
            return self
        if not segments:
            return value or ANY
        segment, rest = segments[0], segments[1:]
        if segment == EACH or (self.items is not None and segment.isdecimal()):
            return ANY if segment == EACH else Shape(self.kinds, self.fields, self.others, ANY)
        known = self.fields.get(segment, self.others)
        fields = dict(self.fields)
        if rest:
            if known is not None or value is not None:
                fields[segment] = (known or EMPTY).put(rest, value)
        elif value is None:
            fields.pop(segment, None)
        else:
            fields[segment] = value
        return Shape(self.kinds | {OBJECT}, fields, self.others, self.items)


ANY: Final = Shape(KINDS, is_any=True)
EMPTY: Final = Shape(frozenset((OBJECT,)))


_OBJECTS: Final = frozenset((OBJECT,))
_NUMBERS_OR_TEXTS: Final = Shape(frozenset((NUMBER, TEXT)))


def plain(kind: str) -> Shape:
    """Return the shape of text, a number, a boolean or null."""
    return Shape(frozenset((kind,)))


def either(shapes: Iterable[Shape]) -> Shape | None:
    """Return the shape that allows what any of these does; None without any."""
    return _Union().of(list(shapes))


def shape_of(schemas: Iterable[ParsedSchema]) -> Shape:
    """Return the shape that allows the events of any of these valid schemas, as the steps of a pipe get them."""
    union = _Union()
    found = union.of([_shape_of(schema, union) for schema in schemas])
    return found if found is not None else ANY


def _shape_of(schema: ParsedSchema, union: "_Union") -> Shape:
    if schema.type is SchemaType.AVRO:
        return _AvroShapes(union).of(avro_tree(schema), MAX_DEPTH)
    return _json_shape(expanded(json.loads(schema.document)), union, MAX_DEPTH)


class _Union:
    """Unites shapes, up to MAX_PARTS of them; beyond, it answers ANY."""

    def __init__(self) -> None:
        self.left = MAX_PARTS

    def of(self, shapes: list[Shape]) -> Shape | None:
        if not shapes:
            return None
        united = shapes[0]
        for one in shapes[1:]:
            united = self._two(united, one)
        return united

    def _two(self, one: Shape, other: Shape) -> Shape:
        self.left -= 1
        if one.is_any or other.is_any or self.left < 0:
            return ANY
        if one is other:
            return one
        fields = dict(one.fields)
        for name, shape in other.fields.items():
            fields[name] = self._two(fields[name], shape) if name in fields else shape
        return Shape(
            one.kinds | other.kinds,
            fields,
            self.of([shape for shape in (one.others, other.others) if shape is not None]),
            self.of([shape for shape in (one.items, other.items) if shape is not None]),
        )


class _AvroShapes:
    """Shapes of one Avro schema; a type that is used twice, or in itself, has one shape for each depth."""

    def __init__(self, union: _Union) -> None:
        self._union = union
        self._known: dict[tuple[int, int], Shape] = {}

    def of(self, node: AvroType, depth: int) -> Shape:
        """Return the shape of a type as JSON, of which `depth` levels are followed."""
        key = (id(node), depth)
        if key not in self._known:
            self._known[key] = self._new(node, depth)
        return self._known[key]

    def _new(self, node: AvroType, depth: int) -> Shape:
        if depth == 0:
            return ANY
        match node.kind:
            case "record":
                found = Shape(_OBJECTS, {one.name: self.of(one.type, depth - 1) for one in node.fields})
            case "map":
                found = Shape(_OBJECTS, others=self.of(node.inner, depth - 1))
            case "array":
                found = Shape(frozenset((ARRAY,)), items=self.of(node.inner, depth - 1))
            case "union":
                found = self._union_of(node, depth)
            case "float" | "double":  # NaN and the infinities are texts
                found = _NUMBERS_OR_TEXTS
            case _:  # a logical type is text or a number, as the sender chose
                found = plain(_AVRO_KINDS[node.kind]) if node.logical is None else _NUMBERS_OR_TEXTS
        return found

    def _union_of(self, node: AvroType, depth: int) -> Shape:
        """Return the shape of a union; a value of it may also be `{"<branch>": value}`."""
        branches = {one.branch_name: self.of(one, depth - 1) for one in node.branches if one.kind != "null"}
        named = Shape(_OBJECTS, branches)
        return self._union.of([*(self.of(one, depth - 1) for one in node.branches), named]) or ANY


def _json_shape(schema: Any, union: _Union, depth: int) -> Shape:
    """Return the shape of a JSON Schema whose `$ref`s are expanded."""
    if depth == 0 or not isinstance(schema, dict) or any(word in schema for word in _OPEN_WORDS):
        return ANY
    kinds = _json_kinds(schema)
    if kinds == KINDS:
        return ANY
    more = schema.get("additionalProperties", schema.get("unevaluatedProperties", True))
    fields = {name: _json_shape(one, union, depth - 1) for name, one in schema.get("properties", {}).items()}
    others = None if more is False else _json_shape(more, union, depth - 1)
    items = [_json_shape(one, union, depth - 1) for one in schema.get("prefixItems", ())]
    if (rest := schema.get("items", True)) is not False:
        items.append(_json_shape(rest, union, depth - 1))
    return Shape(
        kinds,
        fields if OBJECT in kinds else {},
        others if OBJECT in kinds else None,
        union.of(items) if ARRAY in kinds else None,
    )


def _json_kinds(schema: Mapping[str, Any]) -> frozenset[str]:
    if "type" in schema:
        named = schema["type"]
        return frozenset(_JSON_KINDS[one] for one in ([named] if isinstance(named, str) else named))
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    return frozenset(map(kind_of, values)) if values is not None else KINDS


def kind_of(value: Any) -> str:
    """Return the kind of a value of JSON."""
    match value:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case str():
            return TEXT
        case dict():
            return OBJECT
        case list():
            return ARRAY
    return NUMBER
