"""Avro schemas: parse JSON documents to a tree of types, and write the canonical form. Pure.

Source: the Avro specification 1.12 (https://avro.apache.org/docs/1.12.0/specification/). It is stricter than the
specification in one respect: a known logical type on a wrong type is refused, where readers would ignore it.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from dataplane.schemas.avro_attributes import (
    aliases_of,
    doc_of,
    enum_default_of,
    field_aliases_of,
    full_name,
    is_full_name,
    is_name,
    namespace_of,
    rejected,
    symbols_of,
    whole_number,
)
from dataplane.schemas.types import SchemaRejectedError
from dataplane.spec.schema import MAX_LEVELS, MAX_PARTS, SchemaError, SchemaPath, levels, read_schema

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NAMED: Final = ("record", "enum", "fixed")
COMPLEX: Final = (*NAMED, "array", "map")
ORDERS: Final = ("ascending", "descending", "ignore")
MAX_FIXED_BYTES: Final = 1 << 20  # ingest accepts no larger event
MAX_REFERENCES: Final = 100
MAX_EXPANDED_LEVELS: Final = 192  # of JSON, with references: 64 records in each other, as deep as a value may be
MAX_DEFAULTS: Final = 20_000  # comparisons of a part of a default with a type
INT_BITS: Final = {"int": 31, "long": 63}
_SHOWN: Final = 100
# Attributes with a meaning in Avro; all others belong to the schema's owner and are kept.
_KNOWN: Final = frozenset(
    ("type", "name", "namespace", "aliases", "doc", "fields", "symbols", "default", "items", "values", "size")
)
_KNOWN_OF_FIELD: Final = frozenset(("type", "name", "aliases", "doc", "default", "order"))
# Types that a logical type may annotate; a number is the size of a fixed.
LOGICAL_BASES: Final[Mapping[str, tuple[str | int, ...]]] = {
    "decimal": ("bytes", "fixed"),
    "uuid": ("string", 16),
    "time-uuid": ("string", 16),
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "duration": (12,),
    "money": ("record",),
}
MAX_PRECISION: Final = 1_000  # digits of a decimal


class _NoDefault:
    """The value of a field without a default; null is a default."""


NO_DEFAULT: Final = _NoDefault()


@dataclass(frozen=True, slots=True)
class LogicalType:
    """A known logical type; precision and scale of a decimal."""

    name: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})" if self.name == "decimal" else self.name


@dataclass(slots=True, eq=False)
class AvroField:
    """Field of a record. `default`: JSON, or NO_DEFAULT."""

    name: str
    type: "AvroType"
    default: Any = NO_DEFAULT
    aliases: tuple[str, ...] = ()
    order: str = ""
    doc: str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class AvroType:
    """Node of a schema's tree; a recursive record contains itself, so nodes are compared by identity.

    name, aliases: full names of a record, enum or fixed; fields: of a record; symbols, default: of an enum; size: of a
    fixed; item: of an array or map; branches: of a union; extras: attributes that Avro does not define.
    """

    kind: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    fields: tuple[AvroField, ...] = ()
    symbols: tuple[str, ...] = ()
    default: str | None = None
    size: int = 0
    item: "AvroType | None" = None
    branches: tuple["AvroType", ...] = ()
    logical: LogicalType | None = None
    doc: str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)

    @property
    def short_name(self) -> str:
        """Return the name without its namespace."""
        return self.name.rpartition(".")[2]

    @property
    def branch_name(self) -> str:
        """Return the name of this type as a branch of a union: the full name, or the kind."""
        return self.name or self.kind

    @property
    def inner(self) -> "AvroType":
        """Return the type of an array's items or a map's values. Raises TypeError for other types."""
        if self.item is None:
            raise TypeError(f"{self.kind} has no items")
        return self.item

    def __str__(self) -> str:
        """Return a short description, as messages show it."""
        match self.kind:
            case "union":
                shown = f"union of {', '.join(one.label for one in self.branches) or 'nothing'}"
            case "array" | "map":
                shown = f"{self.kind} of {self.inner.label}"
            case _:
                shown = self.label
        return shown[:_SHOWN]

    @property
    def label(self) -> str:
        """Return the kind, with the name of a named type and the logical type."""
        named = f"{self.kind} {self.name}" if self.name else self.kind
        return f"{named} ({self.logical})" if self.logical else named


def parse_avro(text: str, references: Mapping[str, str]) -> tuple[AvroType, tuple[str, ...]]:
    """Return the tree of a schema from a person, and the names of the references that it uses.

    references: whole schemas (`document_of`) by the name of the reference. Raises SchemaRejectedError.
    """
    if len(references) > MAX_REFERENCES:
        raise SchemaRejectedError("", f"needs at most {MAX_REFERENCES} references")
    reader = _Reader()
    for name, document in references.items():
        reader.add_reference(name, document)
    tree = reader.read(read_json(text))
    if references and levels(json.loads(document_of(tree))) > MAX_EXPANDED_LEVELS:
        raise SchemaRejectedError("", f"needs at most {MAX_EXPANDED_LEVELS} levels, with every reference expanded")
    return tree, tuple(name for name in references if name in reader.used)


@lru_cache(maxsize=1_000)
def tree_of(document: str) -> AvroType:
    """Return the tree of a whole schema (`document_of`)."""
    return tree_of_json(json.loads(document))


def tree_of_json(document: Any) -> AvroType:
    """Return the tree of a schema in parsed JSON of bounded depth. Raises SchemaRejectedError."""
    return _Reader().read(document)


def canonical_form(tree: AvroType) -> str:
    """Return Avro's Parsing Canonical Form, which defines the fingerprint."""
    return _text(_canonical(tree, set()))


def document_of(tree: AvroType) -> str:
    """Return the whole schema as JSON, each named type defined where it first occurs, with all attributes."""
    return _text(_document(tree, "", set()))


def read_json(text: str) -> Any:
    """Return the JSON document of a schema or protocol. Raises SchemaRejectedError.

    A text with an unpaired surrogate is refused: it has no UTF-8 form, so that it could be neither hashed nor stored.
    """
    try:
        document = read_schema(text)
    except SchemaError as exc:
        raise SchemaRejectedError("", exc.reason) from exc
    if levels(document) > MAX_LEVELS:
        raise SchemaRejectedError("", f"needs at most {MAX_LEVELS} levels")
    try:
        _text(document).encode()
    except UnicodeEncodeError as exc:
        raise SchemaRejectedError("", "contains an unpaired surrogate") from exc
    return document


def _text(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


class _Reader:
    """Reads one schema after the schemas that it may refer to; counts parts and knows the named types so far."""

    def __init__(self) -> None:
        self._named: dict[str, AvroType] = {}
        self._origins: dict[str, str] = {}  # full name -> reference that defined it
        self._parts = 0
        self._defaults: list[tuple[AvroType, Any, SchemaPath]] = []
        self.used: set[str] = set()

    def add_reference(self, name: str, document: str) -> None:
        """Make the named types of a referenced schema known."""
        other = tree_of(document)
        for one in named_types_in(other):
            known = self._named.setdefault(one.name, one)
            if known is not one and document_of(known) != document_of(one):
                raise SchemaRejectedError("", f"the references define {one.name} in two different ways")
            self._origins.setdefault(one.name, name)
        self._parts += sum(1 for _ in _nodes(other))

    def read(self, schema: Any) -> AvroType:
        """Return the tree of a schema. Raises SchemaRejectedError."""
        tree = self._read(schema, (), "")
        fits = _DefaultCheck()
        for kind, default, place in self._defaults:
            if problem := fits.problem(kind, default):
                raise rejected(place, problem)
        return tree

    def _read(self, schema: Any, path: SchemaPath, namespace: str) -> AvroType:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise rejected(path, f"needs at most {MAX_PARTS} types, with every reference expanded")
        match schema:
            case str():
                return self._named_or_primitive(schema, path, namespace)
            case list():
                return self._union(schema, path, namespace)
            case dict():
                return self._object(schema, path, namespace)
        raise rejected(path, "needs a type: a name, an object or a list of types")

    def _named_or_primitive(self, name: str, path: SchemaPath, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        wanted = full_name(name, namespace)
        if wanted not in self._named:
            hint = (
                "a name, its definition before it, or a reference to its subject"
                if name not in COMPLEX
                else (f'an object with "type": "{name}"')
            )
            raise rejected(path, f"type {wanted[:_SHOWN]} is not defined here: needs {hint}")
        if wanted in self._origins:
            self.used.add(self._origins[wanted])
        return self._named[wanted]

    def _union(self, schema: list[Any], path: SchemaPath, namespace: str) -> AvroType:
        branches, seen = [], set()
        for place, one in enumerate(schema):
            here = (*path, str(place))
            branch = self._read(one, here, namespace)
            if branch.kind == "union":
                raise rejected(here, "a union cannot contain a union directly")
            key = branch.branch_name
            if key in seen:
                raise rejected(here, f"the union has {key} twice")
            seen.add(key)
            branches.append(branch)
        return AvroType("union", branches=tuple(branches))

    def _object(self, schema: dict[str, Any], path: SchemaPath, namespace: str) -> AvroType:
        kind = schema.get("type")
        if not isinstance(kind, str):
            raise rejected((*path, "type"), "needs the name of a type")
        if kind in NAMED:
            return self._definition(kind, schema, path, namespace)
        if kind in ("array", "map"):
            word = "items" if kind == "array" else "values"
            if word not in schema:
                raise rejected(path, f"{kind} needs {word}")
            node = AvroType(kind, item=self._read(schema[word], (*path, word), namespace))
        elif kind in PRIMITIVES:
            node = AvroType(kind)
        else:
            return self._named_or_primitive(kind, (*path, "type"), namespace)
        self._describe(node, schema, path)
        return node

    def _definition(self, kind: str, schema: dict[str, Any], path: SchemaPath, namespace: str) -> AvroType:
        name = self._name_of(schema, path, namespace)
        if name in self._named:
            raise rejected((*path, "name"), f"{name} is already defined")
        inside = namespace_of(name)
        node = AvroType(kind, name, aliases_of(schema, path, inside))
        self._named[name] = node  # before its fields: a record may contain itself
        match kind:
            case "record":
                node.fields = tuple(self._fields(schema, path, inside))
            case "enum":
                node.symbols = symbols_of(schema, path)
                node.default = enum_default_of(schema, node.symbols, path)
            case "fixed":
                node.size = whole_number(schema.get("size"), (*path, "size"), 0, MAX_FIXED_BYTES)
        self._describe(node, schema, path)
        return node

    def _name_of(self, schema: dict[str, Any], path: SchemaPath, namespace: str) -> str:
        name, space = schema.get("name"), schema.get("namespace", namespace)
        if not isinstance(name, str) or not is_full_name(name):
            raise rejected((*path, "name"), "needs a name of letters, digits and _, which does not begin with a digit")
        if space is None:
            space = ""
        if not isinstance(space, str) or (space and not is_full_name(space)):
            raise rejected((*path, "namespace"), "needs names of letters, digits and _, joined by dots")
        if name.rpartition(".")[2] in PRIMITIVES:
            raise rejected((*path, "name"), f"{name} is the name of a primitive type")
        return full_name(name, space)

    def _fields(self, schema: dict[str, Any], path: SchemaPath, namespace: str) -> Iterator[AvroField]:
        listed = schema.get("fields")
        if not isinstance(listed, list):
            raise rejected((*path, "fields"), "a record needs a list of fields")
        names: set[str] = set()
        aliases: set[str] = set()
        for place, one in enumerate(listed):
            here = (*path, "fields", str(place))
            if not isinstance(one, dict):
                raise rejected(here, "a field needs an object with name and type")
            found = self._field(one, here, namespace)
            if found.name in names:
                raise rejected((*here, "name"), f"the record has a field {found.name} already")
            if shared := aliases.intersection(found.aliases):
                raise rejected((*here, "aliases"), f"{min(shared)} is also an alias of another field")
            names.add(found.name)
            aliases.update(found.aliases)
            yield found

    def _field(self, schema: dict[str, Any], path: SchemaPath, namespace: str) -> AvroField:
        name = schema.get("name")
        if not isinstance(name, str) or not is_name(name):
            raise rejected((*path, "name"), "needs a name of letters, digits and _, which does not begin with a digit")
        if "type" not in schema:
            raise rejected(path, f"field {name} needs a type")
        order = schema.get("order", "")
        if order and order not in ORDERS:
            raise rejected((*path, "order"), f"needs one of {', '.join(ORDERS)}")
        kind = self._read(schema["type"], (*path, "type"), namespace)
        default = schema.get("default", NO_DEFAULT)
        if default is not NO_DEFAULT:  # checked at the end: a record is not complete while its fields are read
            self._defaults.append((kind, default, (*path, "default")))
        extras = {word: value for word, value in schema.items() if word not in _KNOWN_OF_FIELD}
        return AvroField(name, kind, default, field_aliases_of(schema, path), order, doc_of(schema, path), extras)

    def _describe(self, node: AvroType, schema: dict[str, Any], path: SchemaPath) -> None:
        node.doc = doc_of(schema, path)
        node.extras = {word: value for word, value in schema.items() if word not in _KNOWN}
        node.logical = _logical(node, schema, path)


def _logical(node: AvroType, schema: dict[str, Any], path: SchemaPath) -> LogicalType | None:
    name = schema.get("logicalType")
    if not isinstance(name, str) or name not in LOGICAL_BASES:
        return None  # an unknown one is an annotation of the owner
    bases = LOGICAL_BASES[name]
    if node.kind not in bases and not (node.kind == "fixed" and node.size in bases):
        needed = " or ".join(f"fixed of {one} bytes" if isinstance(one, int) else one for one in bases)
        raise rejected((*path, "logicalType"), f"{name} needs the type {needed}, not {node.kind}")
    if name == "decimal":
        return _decimal(node, schema, path)
    if name == "money":
        _check_money(node, path)
    return LogicalType(name)


def _decimal(node: AvroType, schema: dict[str, Any], path: SchemaPath) -> LogicalType:
    precision = whole_number(schema.get("precision"), (*path, "precision"), 1, MAX_PRECISION)
    scale = whole_number(schema.get("scale", 0), (*path, "scale"), 0, precision)
    if node.kind == "fixed":
        most = math.floor(math.log10(2) * (8 * node.size - 1)) if node.size else 0
        if precision > most:
            raise rejected((*path, "precision"), f"{node.size} bytes hold at most {most} digits, not {precision}")
    return LogicalType("decimal", precision, scale)


def _check_money(node: AvroType, path: SchemaPath) -> None:
    fields = {one.name: one.type for one in node.fields}
    amount, currency = fields.get("amount"), fields.get("currency")
    if amount is None or amount.logical is None or amount.logical.name != "decimal":
        raise rejected((*path, "logicalType"), "money needs a field amount of the logical type decimal")
    if currency is None or currency.kind not in ("string", "enum"):
        raise rejected((*path, "logicalType"), "money needs a field currency of the type string or enum")


class _DefaultCheck:
    """Checks the defaults of one schema. A default of a union may fit any of its branches, as of Avro 1.12."""

    def __init__(self) -> None:
        self._fits: dict[tuple[int, int], bool] = {}  # by the ids of type and value; unions of records repeat them

    def problem(self, kind: AvroType, value: Any) -> str | None:
        """Return what is wrong with a default; None if it fits its type."""
        return None if self._check(kind, value, MAX_LEVELS) else f"the default does not fit {kind}"

    def _check(self, kind: AvroType, value: Any, left: int) -> bool:
        key = id(kind), id(value)
        if key not in self._fits:
            if left == 0 or len(self._fits) > MAX_DEFAULTS:
                return False
            self._fits[key] = False  # a record whose defaults contain itself has no finite value
            self._fits[key] = self._compare(kind, value, left - 1)
        return self._fits[key]

    def _compare(self, kind: AvroType, value: Any, left: int) -> bool:
        match kind.kind:
            case "union":
                return any(self._check(one, value, left) for one in kind.branches)
            case "record":
                return isinstance(value, dict) and all(
                    self._check(one.type, value.get(one.name, one.default), left) for one in kind.fields
                )
            case "array":
                return isinstance(value, list) and all(self._check(kind.inner, one, left) for one in value)
            case "map":
                return isinstance(value, dict) and all(self._check(kind.inner, one, left) for one in value.values())
        return _SCALARS[kind.kind](kind, value)


def _is_bytes(value: Any) -> bool:
    return isinstance(value, str) and all(ord(one) < 256 for one in value)


def _is_whole(kind: AvroType, value: Any) -> bool:
    bits = INT_BITS[kind.kind]
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << bits) <= value < 1 << bits


def _is_number(_: AvroType, value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_SCALARS: Final[Mapping[str, Callable[[AvroType, Any], bool]]] = {
    "null": lambda _, value: value is None,
    "boolean": lambda _, value: isinstance(value, bool),
    "int": _is_whole,
    "long": _is_whole,
    "float": _is_number,
    "double": _is_number,
    "string": lambda _, value: isinstance(value, str),
    "bytes": lambda _, value: _is_bytes(value),
    "fixed": lambda kind, value: _is_bytes(value) and len(value) == kind.size,
    "enum": lambda kind, value: isinstance(value, str) and value in kind.symbols,
}


def named_types_in(tree: AvroType) -> list[AvroType]:
    """Return the named types of a schema, each once, in the order of their definition."""
    return [one for one in _nodes(tree) if one.name]


def _nodes(tree: AvroType) -> Iterator[AvroType]:
    """Yield all nodes; each definition of a named type once."""
    seen: set[str] = set()
    left = [tree]
    while left:
        node = left.pop()
        if node.name in seen:
            continue
        if node.name:
            seen.add(node.name)
        yield node
        below = [one.type for one in node.fields] + list(node.branches) + ([node.item] if node.item else [])
        left += reversed(below)


def _canonical(node: AvroType, seen: set[str]) -> Any:
    if node.name in seen:
        return node.name
    if node.kind == "union":
        return [_canonical(one, seen) for one in node.branches]
    built: dict[str, Any] = {"name": node.name, "type": node.kind} if node.name else {"type": node.kind}
    if node.name:
        seen.add(node.name)
    match node.kind:
        case "record":
            built["fields"] = [{"name": one.name, "type": _canonical(one.type, seen)} for one in node.fields]
        case "enum":
            built["symbols"] = list(node.symbols)
        case "fixed":
            built["size"] = node.size
        case "array":
            built["items"] = _canonical(node.inner, seen)
        case "map":
            built["values"] = _canonical(node.inner, seen)
        case _:
            return node.kind
    return built


def _document(node: AvroType, namespace: str, seen: set[str]) -> Any:
    if node.kind == "union":
        return [_document(one, namespace, seen) for one in node.branches]
    if node.name in seen:
        return node.name
    built: dict[str, Any] = {"type": node.kind}
    if node.name:
        seen.add(node.name)
        built["name"] = node.name
        if "." not in node.name and namespace:
            built["namespace"] = ""
        if node.aliases:
            built["aliases"] = list(node.aliases)
    if node.doc is not None:
        built["doc"] = node.doc
    match node.kind:
        case "record":
            built["fields"] = [_document_of_field(one, namespace_of(node.name), seen) for one in node.fields]
        case "enum":
            built["symbols"] = list(node.symbols)
            if node.default is not None:
                built["default"] = node.default
        case "fixed":
            built["size"] = node.size
        case "array":
            built["items"] = _document(node.inner, namespace, seen)
        case "map":
            built["values"] = _document(node.inner, namespace, seen)
    built |= node.extras
    return node.kind if len(built) == 1 else built


def _document_of_field(one: AvroField, namespace: str, seen: set[str]) -> dict[str, Any]:
    built: dict[str, Any] = {"name": one.name, "type": _document(one.type, namespace, seen)}
    if one.default is not NO_DEFAULT:
        built["default"] = one.default
    if one.aliases:
        built["aliases"] = list(one.aliases)
    if one.order:
        built["order"] = one.order
    if one.doc is not None:
        built["doc"] = one.doc
    return built | dict(one.extras)
