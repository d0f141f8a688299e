"""Normal form of a schema: two texts with the same normal form are one schema to the registry. Pure.

Unlike the canonical form, it keeps defaults, documentation, aliases and logical types, which decide how a reader
resolves data. It leaves out only what has no meaning: white space, the order of attributes, a namespace that is
written apart from its name, and `{"type": "string"}` for `"string"`.
"""

import json
from collections.abc import Mapping
from typing import Any

from dataplane.schemas.avro import NAMED, PRIMITIVES
from dataplane.schemas.avro_attributes import full_name, namespace_of
from dataplane.schemas.types import SchemaType


def normal_form(kind: SchemaType, text: str) -> str:
    """Return the normal form of the text of a valid schema."""
    document = json.loads(text)
    if kind is SchemaType.AVRO:
        document = _avro(document, "")
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def _avro(schema: Any, namespace: str) -> Any:  # noqa: PLR0911 one branch for each kind
    match schema:
        case str():
            return _full_name(schema, namespace)
        case list():
            return [_avro(branch, namespace) for branch in schema]
        case {"type": str() as kind} if kind in NAMED:
            return _named(schema, namespace)
        case {"type": "array"}:
            return {**schema, "items": _avro(schema.get("items"), namespace)}
        case {"type": "map"}:
            return {**schema, "values": _avro(schema.get("values"), namespace)}
        case {"type": inner}:
            found = _avro(inner, namespace)
            return found if len(schema) == 1 else {**schema, "type": found}
        case _:
            return schema


def _named(schema: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    name = str(schema.get("name", ""))
    full = _full_name(name, str(schema.get("namespace", namespace)))
    found = {key: value for key, value in schema.items() if key != "namespace"} | {"name": full}
    if "fields" in found:
        inner = namespace_of(full)
        found["fields"] = [{**field, "type": _avro(field.get("type"), inner)} for field in found["fields"]]
    return found


def _full_name(name: str, namespace: str) -> str:
    return name if name in PRIMITIVES else full_name(name, namespace)
