"""Fields of a schema as rows of a table, and the changes between two versions. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import msgspec

from dataplane.schemas.avro import NAMED
from dataplane.schemas.types import SchemaType

MOST_FIELDS: Final = 300


@dataclass(frozen=True)
class FieldRow:
    """One field: its path, its type in words, its presence and its documentation."""

    path: str
    type: str
    optional: bool
    default: str = ""
    doc: str = ""

    @property
    def presence(self) -> str:
        """Presence of the field in words: required, optional, or its default."""
        if self.default:
            return f"default {self.default}"
        return "optional" if self.optional else "required"


@dataclass(frozen=True)
class SchemaFieldChange:
    """Difference of one field: `kind` is `added`, `removed` or `changed`."""

    kind: str
    path: str
    before: str = ""
    after: str = ""


def field_rows(kind: str, document: Any) -> list[FieldRow]:
    """Return the fields of a valid schema, those of nested records by path, at most MOST_FIELDS."""
    rows = _avro_fields(document, "", ()) if kind == SchemaType.AVRO else _json_fields(document, "", document)
    return list(islice(rows, MOST_FIELDS))


def field_changes(before: Iterable[FieldRow], after: Iterable[FieldRow]) -> list[SchemaFieldChange]:
    """Return the fields that were added, removed or changed, in the order of the newer version."""
    old, new = {row.path: row for row in before}, {row.path: row for row in after}
    found = [SchemaFieldChange("removed", path, _words(row)) for path, row in old.items() if path not in new]
    for path, row in new.items():
        if path not in old:
            found.append(SchemaFieldChange("added", path, after=_words(row)))
        elif (was := _words(old[path])) != (now := _words(row)):
            found.append(SchemaFieldChange("changed", path, was, now))
        elif old[path].doc != row.doc:
            found.append(SchemaFieldChange("changed", path, old[path].doc or "no text", row.doc or "no text"))
    return found


def field_at(document: Any, pointer: str) -> str:
    """Return the field at a JSON pointer into an Avro schema, such as `customer.name`; "" if there is none.

    A pointer may continue in the schema of a reference; the field is then the one that refers to it.
    """
    names: list[str] = []
    for part in filter(None, pointer.split("/")):
        if isinstance(document, dict) and part in document:
            document = document[part]
        elif isinstance(document, list) and part.isdigit() and int(part) < len(document):
            document = document[int(part)]
            if isinstance(document, dict) and "type" in document and "fields" not in document and "name" in document:
                names.append(str(document["name"]))
        else:
            break
    return ".".join(names)


def _words(row: FieldRow) -> str:
    return f"{row.type}, {row.presence}"


def _avro_fields(schema: Any, path: str, inside: tuple[str, ...]) -> Iterator[FieldRow]:
    """Yield the fields of every record in a type; `inside` has the records around it, which ends recursion."""
    match schema:
        case list():
            for branch in schema:
                yield from _avro_fields(branch, path, inside)
        case {"type": "record", "name": str(name), "fields": list(fields)} if name not in inside:
            for one in fields:
                where = f"{path}.{one['name']}" if path else str(one["name"])
                default = msgspec.json.encode(one["default"]).decode() if "default" in one else ""
                yield FieldRow(where, _avro_type(one["type"]), "default" in one, default, str(one.get("doc", "")))
                yield from _avro_fields(one["type"], where, (*inside, name))
        case {"type": "array", "items": items}:
            yield from _avro_fields(items, f"{path}[]", inside)
        case {"type": "map", "values": values}:
            yield from _avro_fields(values, f"{path}{{}}", inside)


def _avro_type(schema: Any) -> str:
    match schema:
        case list():
            return " | ".join(map(_avro_type, schema))
        case {"type": "array", "items": items}:
            return f"array of {_avro_type(items)}"
        case {"type": "map", "values": values}:
            return f"map of {_avro_type(values)}"
        case {"type": str(kind), "name": str(name)} if kind in NAMED:
            return f"{kind} {name}{_logical(schema)}"
        case {"type": str(kind)}:
            return f"{kind}{_logical(schema)}"
        case _:
            return str(schema)


def _logical(schema: Mapping[str, Any]) -> str:
    logical = schema.get("logicalType")
    if logical == "decimal":
        return f" (decimal {schema.get('precision')}, {schema.get('scale', 0)})"
    return f" ({logical})" if logical else ""


def _json_fields(schema: Any, path: str, root: Any, depth: int = 0) -> Iterator[FieldRow]:
    schema = _target(schema, root)
    if not isinstance(schema, dict) or depth > 16:
        return
    required = schema.get("required", [])
    for name, one in schema.get("properties", {}).items():
        where = f"{path}.{name}" if path else name
        found = _target(one, root)
        doc = str(found.get("description", "")) if isinstance(found, dict) else ""
        yield FieldRow(where, _json_type(found), name not in required, doc=doc)
        yield from _json_fields(found, where, root, depth + 1)
    if "items" in schema:
        yield from _json_fields(schema["items"], f"{path}[]", root, depth + 1)


def _json_type(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "any" if schema is not False else "none"
    kind = schema.get("type", "any")
    words = " | ".join(map(str, kind)) if isinstance(kind, list) else str(kind)
    return f"{words} ({schema['format']})" if "format" in schema else words


def _target(schema: Any, root: Any) -> Any:
    """Return the schema that a `$ref` to `#/$defs/` names; other schemas as they are."""
    if isinstance(schema, dict) and str(schema.get("$ref", "")).startswith("#/$defs/"):
        return root.get("$defs", {}).get(schema["$ref"].removeprefix("#/$defs/"), schema)
    return schema
