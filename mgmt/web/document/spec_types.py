"""Schemas of the spec's types for the OpenAPI document, generated from the types."""

import re
from collections.abc import Iterator
from inspect import cleandoc
from typing import Any, Final

import msgspec

from dataplane.spec import PipeSpec

# Python's `$` lets a final newline pass, so the types forbid it. In JSON Schema (ECMA-262) it does not, and the RE2 of
# many generators knows no look-ahead.
_NO_FINAL_NEWLINE: Final = r"(?!\n)$"
_FIELD: Final = re.compile(r"^(\w+): +(.+(?:\n {2,}.+)*)", re.MULTILINE)  # a field in the docstring of its type


def spec_components() -> dict[str, Any]:
    """Return the schemas by component name. Unions with a type field are `oneOf`, which generators read as such."""
    _, components = msgspec.json.schema_components((PipeSpec,), ref_template="#/components/schemas/{name}")
    for schema in components.values():
        _describe_fields(schema)
        for part in _parts(schema):
            if "discriminator" in part and "anyOf" in part:
                part["oneOf"] = part.pop("anyOf")
            if isinstance(part.get("default"), dict) and part["default"]:
                del part["default"]  # the generator of Python clients drops a type that has one
            if isinstance(part.get("pattern"), str):
                part["pattern"] = part["pattern"].replace(_NO_FINAL_NEWLINE, "$")
    return components


def _describe_fields(schema: dict[str, Any]) -> None:
    """Give the fields the descriptions that the docstring of their type has."""
    schema["description"] = cleandoc(schema.get("description", ""))
    for name, words in _FIELD.findall(schema["description"]):
        if name in schema.get("properties", {}):
            text = " ".join(words.split())
            schema["properties"][name]["description"] = text[:1].upper() + text[1:] + "."


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects of a schema, itself first."""
    if isinstance(schema, dict):
        yield schema
        for value in list(schema.values()):
            yield from _parts(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _parts(value)
