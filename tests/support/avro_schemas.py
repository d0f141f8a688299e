"""Pairs of random Avro schemas, values that reach every branch of a writer, and the specification's resolution."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from dataplane.schemas.avro import NO_DEFAULT, AvroType, LogicalType

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
DECIMALS: Final = ((4, 2), (6, 2), (6, 3))
LOGICAL: Final = ("date", "timestamp-millis", "timestamp-micros", "uuid", "decimal")
PROMOTIONS: Final = {
    ("int", "long"),
    ("int", "float"),
    ("int", "double"),
    ("long", "float"),
    ("long", "double"),
    ("float", "double"),
    ("string", "bytes"),
    ("bytes", "string"),
}
DEEPEST: Final = 5
SCALARS: Final = {"null": None, "boolean": True, "int": 7, "long": 1 << 40, "float": 0.5, "double": 0.25} | {
    "bytes": b"bytes",
    "string": "text",
}
# Differences of two types that fastavro does not see.
OTHER_KIND: Final = "a named type of another kind has the same name"
MEANING: Final = "the logical types give another meaning"
SHORT_ALIAS: Final = "an alias has the same name in another namespace"


class UnreadableError(Exception):
    """The specification gives the reader no value."""


def logical(rng: random.Random) -> dict[str, Any]:
    kind = rng.choice(LOGICAL)
    if kind == "decimal":
        precision, scale = rng.choice(DECIMALS)
        return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    base = {"date": "int", "uuid": "string"}.get(kind, "long")
    return {"type": base, "logicalType": kind}


class SchemaMaker:
    """Makes random schemas; names are unique within one schema and the same in others."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._count = 0

    def name(self) -> str:
        self._count += 1
        space = self.rng.choice(("", "a.", "b.c."))
        return f"{space}T{self._count}"

    def schema(self, depth: int = 0, in_union: bool = False) -> Any:
        rng = self.rng
        if depth >= 3 or rng.random() < 0.35:
            return logical(rng) if rng.random() < 0.25 else rng.choice(PRIMITIVES)
        makers: list[Callable[[], Any]] = [
            lambda: self.record(depth),
            lambda: self.record(depth),
            self.enum,
            lambda: {"type": "fixed", "name": self.name(), "size": rng.choice((2, 4))},
            lambda: {"type": "array", "items": self.schema(depth + 1)},
            lambda: {"type": "map", "values": self.schema(depth + 1)},
        ]
        return rng.choice(makers + [lambda: self.union(depth)] * (0 if in_union else 2))()

    def record(self, depth: int) -> dict[str, Any]:
        name = self.name()
        fields = [self.field(number, depth) for number in range(self.rng.randint(0 if depth else 1, 4))]
        if self.rng.random() < 0.3:
            inner = self.rng.choice((["null", name], {"type": "array", "items": name}, {"type": "map", "values": name}))
            fields.append({"name": "self", "type": inner})
        return {"type": "record", "name": name, "fields": fields}

    def field(self, number: int, depth: int) -> dict[str, Any]:
        built: dict[str, Any] = {"name": f"f{number}", "type": self.schema(depth + 1)}
        if self.rng.random() < 0.4:
            built |= default_of(built["type"])
        return built

    def enum(self) -> dict[str, Any]:
        symbols = self.rng.sample("ABCD", self.rng.randint(1, 4))
        default = {"default": symbols[0]} if self.rng.random() < 0.3 else {}
        return {"type": "enum", "name": self.name(), "symbols": symbols} | default

    def union(self, depth: int) -> list[Any]:
        branches: dict[str, Any] = {}
        for _ in range(self.rng.randint(1, 4)):
            one = self.schema(depth + 1, in_union=True)
            branches.setdefault(kind_of(one), one)
        return list(branches.values())


def kind_of(schema: Any) -> str:
    return str(schema.get("name", schema["type"]) if isinstance(schema, dict) else schema)


def default_of(schema: Any) -> dict[str, Any]:
    """Return a default that the type accepts, if there is a simple one."""
    simple: dict[str, Any] = {"null": None, "boolean": True, "int": 1, "long": 2, "float": 0.5, "double": 1.5}
    simple |= {"string": "x", "bytes": "x", "array": [], "map": {}}
    if isinstance(schema, list):
        return default_of(schema[0]) if schema else {}
    if isinstance(schema, dict) and schema["type"] == "enum":
        return {"default": schema["symbols"][0]}
    if isinstance(schema, dict) and schema["type"] == "fixed":
        return {"default": "x" * schema["size"]}
    kind = schema["type"] if isinstance(schema, dict) else schema
    return {"default": simple[kind]} if kind in simple else {}


def places(schema: Any) -> Iterator[tuple[Any, Any]]:
    """Yield container and key of each type in a schema."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(schema, list):
        inner = [(schema, place) for place in range(len(schema))]
    elif isinstance(schema, dict):
        inner = [(one, "type") for one in schema.get("fields", ())]
        inner += [(schema, word) for word in ("items", "values") if word in schema]
    for container, key in inner:
        yield container, key
        yield from places(container[key])


def changed(schema: Any, rng: random.Random) -> Any:
    """Return a schema after one to three random changes, valid or not."""
    root = {"type": copy.deepcopy(schema)}
    for _ in range(rng.randint(1, 3)):
        container, key = rng.choice([(root, "type"), *places(root["type"])])
        container[key] = change(container[key], rng)
    return root["type"]


def change(schema: Any, rng: random.Random) -> Any:
    maker = SchemaMaker(rng)
    maker._count = rng.randint(20, 90)
    if isinstance(schema, list):
        return change_union(schema, maker)
    if isinstance(schema, dict) and schema["type"] in ("record", "enum", "fixed"):
        return change_named(schema, maker)
    promoted_to = [wide for narrow, wide in sorted(PROMOTIONS) if narrow == schema]
    options = [
        maker.schema(2),
        ["null", schema] if kind_of(schema) != "null" else [schema],
        [schema],
        logical(rng),
        rng.choice(promoted_to or PRIMITIVES),
    ]
    return rng.choice(options)


def change_union(schema: list[Any], maker: SchemaMaker) -> Any:
    rng = maker.rng
    match rng.randint(0, 3):
        case 0:
            return [*schema, maker.schema(2, in_union=True)]
        case 1 if len(schema) > 1:
            schema.pop(rng.randrange(len(schema)))
        case 2:
            rng.shuffle(schema)
        case 3 if schema:
            return rng.choice(schema)
    return schema


def change_named(schema: dict[str, Any], maker: SchemaMaker) -> Any:
    rng = maker.rng
    old = schema["name"]
    match rng.randint(0, 9):
        case 0:
            schema["name"] = "z." + old.rpartition(".")[2]
        case 1:
            schema["name"] = maker.name()
        case 2:
            schema["name"] = "other.New"
            schema["aliases"] = [rng.choice((old, f"wrong.{old}", old.rpartition(".")[2]))]
        case 3:
            return ["null", schema]
        case _:
            {"record": change_fields, "enum": change_symbols, "fixed": change_size}[schema["type"]](schema, maker)
            return schema
    renamed(schema, old, schema["name"])
    return schema


def renamed(schema: Any, old: str, new: str) -> None:
    for container, key in places(schema):
        if container[key] == old:
            container[key] = new


def change_size(schema: dict[str, Any], _: SchemaMaker) -> None:
    schema["size"] = 6 - schema["size"]


def change_symbols(schema: dict[str, Any], maker: SchemaMaker) -> None:
    symbols = schema["symbols"]
    schema["symbols"] = maker.rng.sample("ABCD", maker.rng.randint(1, 4)) if maker.rng.random() < 0.7 else symbols[::-1]
    schema.pop("default", None)
    if maker.rng.random() < 0.4:
        schema["default"] = schema["symbols"][-1]


def change_fields(schema: dict[str, Any], maker: SchemaMaker) -> None:
    rng, fields = maker.rng, schema["fields"]
    match rng.randint(0, 6):
        case 0 | 1:
            added = {"name": f"g{rng.randint(0, 9)}", "type": maker.schema(2)}
            fields.insert(
                rng.randint(0, len(fields)), added | (default_of(added["type"]) if rng.random() < 0.6 else {})
            )
        case 2 if fields:
            fields.pop(rng.randrange(len(fields)))
        case 3 if fields:
            rng.shuffle(fields)
        case 4 if fields:
            one = rng.choice(fields)
            one["aliases"] = [one["name"]]
            one["name"] = "renamed"
        case 5 if len(fields) > 1:
            one = fields.pop(rng.randrange(len(fields)))
            rng.choice(fields)["aliases"] = [one["name"]]
        case 6 if fields:
            rng.choice(fields).pop("default", None)


class ValueMaker:
    """Makes values of a writer; each branch and symbol occurs once before one of them occurs again, in random order."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._left: dict[int, list[int]] = {}  # by the id of the node

    def _turn(self, node: AvroType, count: int) -> int:
        left = self._left.setdefault(id(node), [])
        if not left:
            left += self._rng.sample(range(count), count)
        return left.pop()

    def value(self, node: AvroType, depth: int = 0) -> Any:
        found: Any = SCALARS.get(node.kind)
        match node.kind:
            case "record":
                found = {one.name: self.value(one.type, depth + 1) for one in node.fields}
            case "array":
                found = [] if depth > DEEPEST else [self.value(node.inner, depth + 1)]
            case "map":
                found = {} if depth > DEEPEST else {"k": self.value(node.inner, depth + 1)}
            case "union":
                found = self._branch(node, depth)
            case "enum":
                found = node.symbols[self._turn(node, len(node.symbols))]
            case "fixed":
                found = b"z" * node.size
        return found if node.logical is None else logical_value(node.logical)

    def _branch(self, node: AvroType, depth: int) -> Any:
        ends = [number for number, one in enumerate(node.branches) if one.kind in PRIMITIVES]
        place = ends[0] if ends and depth > DEEPEST else self._turn(node, len(node.branches))
        branch = node.branches[place]
        return branch.name or branch.kind, self.value(branch, depth)


def logical_value(kind: LogicalType) -> Any:
    if kind.name == "decimal":
        number = 10**kind.precision - 1
        return number.to_bytes(number.bit_length() // 8 + 1, signed=True)
    return "6ba7b810-9dad-11d1-80b4-00c04fd430c8" if kind.name == "uuid" else 19_000


def resolve(reader: AvroType, writer: AvroType, value: Any) -> Any:
    """Return what a reader gets for a value of a writer, by "Schema Resolution" of the specification 1.12.

    In a union a reader prefers the branch of the writer's own type to one that the value can be promoted to, as Java's
    does; the specification names the first that matches. Values of unions are (branch, value). Raises UnreadableError.
    """
    if writer.kind == "union":
        name, inner = value
        return resolve(reader, next(one for one in writer.branches if (one.name or one.kind) == name), inner)
    branches = reader.branches if reader.kind == "union" else (reader,)
    for branch in sorted(branches, key=lambda one: (one.kind, one.name) != (writer.kind, writer.name)):
        if is_match(branch, writer):
            check_meaning(branch.logical, writer.logical, value)
            return resolve_pair(branch, writer, value)
    raise UnreadableError(", ".join(mismatch(one, writer) for one in branches))


def mismatch(reader: AvroType, writer: AvroType) -> str:
    """Return in which respect two types that are no unions do not match."""
    if reader.item and writer.item and reader.kind == writer.kind:
        return mismatch(reader.inner, writer.inner)
    if reader.name and writer.name:
        names = [reader.name, *reader.aliases]
        if writer.name.split(".")[-1] in names and "." in writer.name:
            return SHORT_ALIAS
        is_named = reader.name.split(".")[-1] == writer.name.split(".")[-1] or writer.name in names
        if reader.kind != writer.kind and is_named:
            return OTHER_KIND
    return "the types do not match"


def resolve_pair(reader: AvroType, writer: AvroType, value: Any) -> Any:
    """Return the value for two types that match."""
    match reader.kind:
        case "record":
            return resolve_record(reader, writer, value)
        case "array":
            return [resolve(reader.inner, writer.inner, one) for one in value]
        case "map":
            return {key: resolve(reader.inner, writer.inner, one) for key, one in value.items()}
        case "enum" if value not in reader.symbols:
            if reader.default is None:
                raise UnreadableError("the reader lacks the symbol")
            return reader.default
    return promoted(reader.kind, value)


def resolve_record(reader: AvroType, writer: AvroType, value: dict[str, Any]) -> dict[str, Any]:
    built = {}
    types = {one.name: one.type for one in writer.fields}
    own = [one.name for one in reader.fields]
    for one in reader.fields:
        names = [name for name in types if name == one.name or (name in one.aliases and name not in own)]
        if len(names) > 1:
            raise UnreadableError("aliases give two fields of the writer the same name")
        if names:
            built[one.name] = resolve(one.type, types[names[0]], value[names[0]])
        elif one.default is NO_DEFAULT:
            raise UnreadableError("a field has no value and no default")
        else:
            built[one.name] = one.default
    return built


def promoted(kind: str, value: Any) -> Any:
    if kind in ("float", "double"):
        return float(value)
    if kind == "bytes" and isinstance(value, str):
        return value.encode()
    return value.decode() if kind == "string" and isinstance(value, bytes) else value


def is_match(reader: AvroType, writer: AvroType) -> bool:
    """Return True if "one of the following" of the specification holds for two types that are no unions."""
    if (writer.kind, reader.kind) in PROMOTIONS:
        return True
    if reader.kind != writer.kind:
        return False
    if reader.kind in ("array", "map"):
        return "union" in (reader.inner.kind, writer.inner.kind) or is_match(reader.inner, writer.inner)
    if reader.name:
        same = reader.name.split(".")[-1] == writer.name.split(".")[-1] or writer.name in reader.aliases
        return same and reader.size == writer.size
    return True


def check_meaning(reader: LogicalType | None, writer: LogicalType | None, value: Any) -> None:
    """Check that the reader gives the value no other meaning. Stricter than the specification, as Penstock is."""
    if reader is None or reader == writer:
        return
    if writer is None or reader.name != writer.name or reader.scale != writer.scale:
        raise UnreadableError(MEANING)
    if abs(int.from_bytes(value, signed=True)) >= 10**reader.precision:
        raise UnreadableError(MEANING)


def without_logical(document: str) -> Any:
    """Return a schema as fastavro reads it without conversion, to compare numbers and bytes."""

    def bare(schema: Any) -> Any:
        if isinstance(schema, list):
            return [bare(one) for one in schema]
        if isinstance(schema, dict):
            return {word: bare(value) for word, value in schema.items() if word not in ("logicalType", "precision")}
        return schema

    return bare(json.loads(document))
