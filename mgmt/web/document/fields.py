"""Descriptions and examples of the fields and parameters of the OpenAPI document.

Descriptions are written where a field is defined: `help_text` of a serializer, docstring of a spec's type. One name has
one meaning in the whole API, so that fields without an own description get the one of their name (`fields/*.yaml`).
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

_FOLDER: Final = Path(__file__).parent / "fields"
_BY_FORMAT: Final[Mapping[str, Any]] = {
    "date-time": "2026-01-31T12:00:00Z",
    "date": "2026-01-31",
    "uri": "https://crm.example.com/in",
    "double": 1.0,
}
_BY_TYPE: Final[Mapping[str, Any]] = {"boolean": True, "integer": 1, "number": 1.0, "string": "text"}
_PYTHON_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}


class KnownField(NamedTuple):
    """Description and example of a field; "" and None if they are not known."""

    description: str = ""
    example: Any = None


def describe(document: dict[str, Any]) -> None:
    """Add the descriptions and examples that are missing in the document."""
    for body, schema in document["components"]["schemas"].items():
        if words := _read("bodies").get(body):
            schema.setdefault("description", words.description)
        for name, field in _fields_of(schema):
            _complete(field, _field_named(body.removeprefix("Patched"), name))
    for operation in operations_of(document):
        for parameter in operation.get("parameters", []):
            known = _read("parameters").get(parameter["name"], KnownField())
            parameter.setdefault("description", known.description)
            if "example" not in parameter:
                schema = parameter["schema"]
                item = _example(schema.get("items", schema), known.example)
                parameter["example"] = [item] if "items" in schema else item


def operations_of(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the operations of the document."""
    for operations in document["paths"].values():
        yield from (operation for operation in operations.values() if isinstance(operation, dict))


def _fields_of(schema: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from schema.get("properties", {}).items()
    for part in (*schema.get("allOf", ()), *schema.get("oneOf", ())):
        yield from _fields_of(part)


def _field_named(body: str, name: str) -> KnownField:
    own = _read("bodies").get(f"{body}.{name}") or _read("spec").get(f"{body}.{name}") or KnownField()
    common = _read("common").get(name, KnownField())
    return KnownField(own.description or common.description, common.example if own.example is None else own.example)


def _complete(field: dict[str, Any], known: KnownField) -> None:
    if not field.get("description") and known.description:
        field["description"] = known.description
    if "$ref" in field or "examples" in field:
        return
    example = _example(field, known.example)
    if example is not None:
        field["examples"] = [example]


def _example(schema: Mapping[str, Any], known: Any) -> Any:
    """Return the known example if it fits the schema, else one made of the schema; None for objects and arrays."""
    types = _types_of(schema)
    if isinstance(known, int) and types == ["string"]:
        known = str(known)  # a number in a path
    if schema.get("enum"):
        return known if known in schema["enum"] else schema["enum"][0]
    if known is not None and any(_is_of(kind, known) for kind in types) and _fits(schema, known):
        return known
    if "default" in schema and schema["default"] is not None:
        return schema["default"]
    if schema.get("format") in _BY_FORMAT:
        return _BY_FORMAT[schema["format"]]
    made = next((_BY_TYPE[kind] for kind in types if kind in _BY_TYPE), None)
    return made if made is None or _fits(schema, made) else schema.get("minimum", made)


def _is_of(kind: str, value: Any) -> bool:
    return isinstance(value, _PYTHON_TYPES.get(kind, ())) and (kind == "boolean") == isinstance(value, bool)


def _types_of(schema: Mapping[str, Any]) -> list[str]:
    """Return the types of a schema without null, also of the parts of a union; none for a reference."""
    kind = schema.get("type", [])
    found = [kind] if isinstance(kind, str) else list(kind)
    for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        found += _types_of(part)
    return [one for one in found if one != "null"]


def _fits(schema: Mapping[str, Any], value: Any) -> bool:
    if isinstance(value, str):
        is_formatted = schema.get("format") in ("date-time", "date", "uri") and "://" not in value and "T" not in value
        return not is_formatted and len(value) <= schema.get("maxLength", len(value))
    if isinstance(value, int | float):
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    return True


@cache
def _read(name: str) -> Mapping[str, KnownField]:
    loaded = yaml.safe_load((_FOLDER / f"{name}.yaml").read_text())
    return {field: KnownField(*entry) for field, entry in loaded.items()}
