"""Propose the version of a schema that accepts rejected events, from the place and the reason of the error. Pure.

A proposal only widens a schema: it makes a field optional, adds a field, a type of a union, or a symbol. The registry
checks it like any other version; a level that also protects readers of earlier versions may refuse it.
"""

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from dataplane.schemas.types import SchemaType
from dataplane.spec.schema import definition_name, path_of

MISSING: Final = "is required, but missing"
UNKNOWN: Final = "is not a field of the schema"
HIDDEN: Final = "***"  # how values begin that a mask hides
_WRONG_KIND: Final = re.compile(r"needs .*, got (a text|a boolean|null|a number)", re.DOTALL)
_WRONG_TYPE: Final = re.compile(r"the value is not of types? ")
_AVRO_KINDS: Final = {"a text": "string", "a boolean": "boolean", "null": "null"}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONG: Final = 1 << 63
_JSON_TYPES: Final = {type(None): "null", int: "integer", float: "number", str: "string", list: "array"}


@dataclass(frozen=True)
class SchemaProposal:
    """A schema that accepts the rejected events, and its change in words. `document`: parsed JSON."""

    document: Any
    words: str


def propose(kind: str, document: Any, pointer: str, reason: str, events: Sequence[Any]) -> SchemaProposal | None:
    """Return the widened schema; None if none can be derived, and a person has to write it.

    document: the newest version as registered, without its references
    pointer:  JSON pointer into the event, with `*` for an index
    reason:   of the refusal, without the place
    events:   decoded samples of the rejected events, in which masked values are hidden
    """
    parts = path_of(pointer)
    made = deepcopy(document)
    values = [value for event in events for value in _values_at(event, parts) if not _is_hidden(value)]
    widen = _Avro(made).widen if kind == SchemaType.AVRO else _Json(made).widen
    words = widen(parts, reason, values)
    return SchemaProposal(made, words) if words else None


def _values_at(value: Any, parts: Sequence[str]) -> Iterator[Any]:
    if not parts:
        yield value
    elif isinstance(value, dict) and parts[0] in value:
        yield from _values_at(value[parts[0]], parts[1:])
    elif isinstance(value, list) and parts[0] == "*":
        for one in value:
            yield from _values_at(one, parts[1:])


def _is_hidden(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(HIDDEN)


def _shown(parts: Sequence[str]) -> str:
    return ".".join(parts)


class _Avro:
    """An Avro schema that is widened in place."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self._named: dict[str, Any] = {}
        self._collect(document, "")

    def widen(self, parts: Sequence[str], reason: str, values: Sequence[Any]) -> str:
        """Widen the schema at a place of the event; return the change in words, "" if it cannot be derived."""
        if not parts:
            return ""
        if reason == UNKNOWN:
            return self._add_field(parts, values)
        field = self._field(parts)
        if field is None:
            return ""
        if reason == MISSING:
            return _make_optional(field, parts)
        if reason.startswith("needs a symbol of "):
            return self._add_symbol(field["type"], parts, values)
        found = _WRONG_KIND.fullmatch(reason)
        added = (_AVRO_KINDS.get(found[1]) or _avro_type(values)) if found else ""
        return _add_branch(field, added, parts) if added else ""

    def _collect(self, schema: Any, namespace: str) -> None:
        """Note the named types of the document by full name."""
        match schema:
            case list():
                for branch in schema:
                    self._collect(branch, namespace)
            case {"type": "record" | "enum" | "fixed", "name": str(name)}:
                inner = str(schema.get("namespace", namespace))
                full = name if "." in name or not inner else f"{inner}.{name}"
                self._named[full] = schema
                for field in schema.get("fields", []):
                    self._collect(field["type"], full.rpartition(".")[0])
            case {"type": inner_type} if not isinstance(inner_type, str):
                self._collect(inner_type, namespace)
            case {"items": inner_type} | {"values": inner_type}:
                self._collect(inner_type, namespace)

    def _types(self, schema: Any) -> Iterator[Any]:
        """Yield the types that a schema stands for: branches of a union, and the definitions of names."""
        if isinstance(schema, list):
            for branch in schema:
                yield from self._types(branch)
        elif isinstance(schema, str):
            named = [one for name, one in self._named.items() if schema in (name, name.rpartition(".")[2])]
            yield from named if len(named) == 1 else [schema]
        elif isinstance(schema, dict) and not isinstance(schema.get("type"), str):
            yield from self._types(schema.get("type"))
        else:
            yield schema

    def _record(self, parts: Sequence[str]) -> dict[str, Any] | None:
        """Return the record at a place; None if there is none, or more than one."""
        found: list[Any] = list(self._types(self._document))
        for part in parts:
            below: list[Any] = []
            for one in found:
                match one:
                    case {"type": "record", "fields": list(fields)}:
                        below += [field["type"] for field in fields if field["name"] == part]
                    case {"type": "array", "items": items} if part == "*":
                        below.append(items)
                    case {"type": "map", "values": items}:
                        below.append(items)
            found = [one for schema in below for one in self._types(schema)]
        records = [one for one in found if isinstance(one, dict) and one.get("type") == "record"]
        return records[0] if len(records) == 1 else None

    def _field(self, parts: Sequence[str]) -> dict[str, Any] | None:
        record = self._record(parts[:-1])
        fields = record["fields"] if record is not None else []
        return next((field for field in fields if field["name"] == parts[-1]), None)

    def _add_field(self, parts: Sequence[str], values: Sequence[Any]) -> str:
        record, added = self._record(parts[:-1]), _avro_type(values)
        if record is None or not added or added == "null" or not _NAME.fullmatch(parts[-1]):
            return ""
        record["fields"].append({"name": parts[-1], "type": ["null", added], "default": None})
        return f"The new optional field {_shown(parts)} of type {added}."

    def _add_symbol(self, schema: Any, parts: Sequence[str], values: Sequence[Any]) -> str:
        enums = [one for one in self._types(schema) if isinstance(one, dict) and one.get("type") == "enum"]
        if len(enums) != 1:
            return ""
        added = [one for one in dict.fromkeys(map(str, values)) if _NAME.fullmatch(one)]
        added = [one for one in added if one not in enums[0]["symbols"]]
        enums[0]["symbols"] += added
        return f"{_shown(parts)} may also be {', '.join(added)}." if added else ""


def _make_optional(field: dict[str, Any], parts: Sequence[str]) -> str:
    """Give a field the default null, which has to be of the first branch."""
    was = field["type"] if isinstance(field["type"], list) else [field["type"]]
    field["type"] = ["null", *(one for one in was if one != "null")]
    field["default"] = None
    return f"{_shown(parts)} becomes optional."


def _add_branch(field: dict[str, Any], added: str, parts: Sequence[str]) -> str:
    """Add a type to a field; the first one stays, because the field's default is of it."""
    was = field["type"] if isinstance(field["type"], list) else [field["type"]]
    if added in was or any(isinstance(one, dict) and one.get("type") == added for one in was):
        return ""
    field["type"] = [*was, added]
    return f"{_shown(parts)} may also be {added}."


def _avro_type(values: Sequence[Any]) -> str:
    """Return the one Avro type that all values have; "" if there is none."""
    kinds = {_avro_kind(value) for value in values}
    if kinds == {"long", "double"}:
        return "double"
    return kinds.pop() if len(kinds) == 1 else ""


def _avro_kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "long" if -_LONG <= value < _LONG else ""
        case float():
            return "double"
        case str():
            return "string"
    return ""


class _Json:
    """A JSON Schema that is widened in place."""

    def __init__(self, document: Any) -> None:
        self._document = document

    def widen(self, parts: Sequence[str], reason: str, values: Sequence[Any]) -> str:
        """Widen the schema at a place of the event; return the change in words, "" if it cannot be derived."""
        if reason in (MISSING, UNKNOWN):
            holder = self._at(parts[:-1]) if parts else None
            if holder is None:
                return ""
            return _drop_required(holder, parts) if reason == MISSING else _add_property(holder, parts, values)
        schema = self._at(parts)
        if schema is None:
            return ""
        if _WRONG_TYPE.match(reason) and "type" in schema:
            return _add_types(schema, parts, values)
        if reason.startswith("the value is not one of ") and isinstance(schema.get("enum"), list):
            added = [one for number, one in enumerate(values) if one not in values[:number] + schema["enum"]]
            schema["enum"] += added
            return f"{_shown(parts)} may also be {', '.join(map(str, added))}." if added else ""
        return ""

    def _at(self, parts: Sequence[str]) -> dict[str, Any] | None:
        schema = self._followed(self._document)
        for part in parts:
            inner = None
            if schema is not None:
                named = schema.get("properties", {}).get(part)
                listed = schema.get("items") if part == "*" else schema.get("additionalProperties")
                inner = named if isinstance(named, dict) else listed
            schema = self._followed(inner)
        return schema

    def _followed(self, schema: Any) -> dict[str, Any] | None:
        if isinstance(schema, dict) and (name := definition_name(str(schema.get("$ref", "")))) is not None:
            schema = self._document.get("$defs", {}).get(name)
        return schema if isinstance(schema, dict) else None


def _drop_required(holder: dict[str, Any], parts: Sequence[str]) -> str:
    if parts[-1] not in holder.get("required", []):
        return ""
    holder["required"].remove(parts[-1])
    return f"{_shown(parts)} becomes optional."


def _add_property(holder: dict[str, Any], parts: Sequence[str], values: Sequence[Any]) -> str:
    if parts[-1] in holder.get("properties", {}):
        return ""
    types = _json_types(values)
    if not types:
        return ""
    holder.setdefault("properties", {})[parts[-1]] = {"type": types[0] if len(types) == 1 else types}
    return f"The new optional field {_shown(parts)} of type {' or '.join(types)}."


def _add_types(schema: dict[str, Any], parts: Sequence[str], values: Sequence[Any]) -> str:
    was = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    added = [one for one in _json_types(values) if one not in was]
    if not added:
        return ""
    schema["type"] = [*was, *added]
    return f"{_shown(parts) or 'The event'} may also be {' or '.join(added)}."


def _json_types(values: Sequence[Any]) -> list[str]:
    return sorted({_json_type(value) for value in values})


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return _JSON_TYPES.get(type(value), "object")
