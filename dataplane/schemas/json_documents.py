"""JSON Schema documents of a registry: checked by dataplane.spec.schema, with references to others expanded. Pure."""

import json
from collections.abc import Mapping
from typing import Any, Final

from dataplane.schemas.types import SchemaRejectedError
from dataplane.spec.schema import (
    MANY,
    MAX_LEVELS,
    NAMED,
    ONE,
    SchemaError,
    checked_schema,
    levels,
    local_reference,
    pointer_of,
    read_schema,
)

_NAMED: Final = NAMED | {"$defs"}


def expanded_json(text: str, references: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return the canonical document with each referenced schema in its `$defs`, and the references that it uses.

    A `$ref` names a reference by its exact text. Raises SchemaRejectedError.
    """
    try:
        document = read_schema(text)
        used: set[str] = set()
        if references and isinstance(document, dict) and levels(document) <= MAX_LEVELS:
            document = _with_references(document, references, used)
        checked = json.loads(checked_schema(document))
    except SchemaError as exc:
        raise SchemaRejectedError(pointer_of(exc.path), exc.reason) from exc
    canonical = json.dumps(checked, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return canonical, tuple(name for name in references if name in used)


def _with_references(document: dict[str, Any], references: Mapping[str, str], used: set[str]) -> dict[str, Any]:
    targets = {name: local_reference(name) for name in references}
    built: dict[str, Any] = _rewritten(document, targets, used)
    added: dict[str, Any] = {}
    for name in references:
        if name in used:
            added |= _definitions(name, json.loads(references[name]))
    defs = built.get("$defs", {})
    if not isinstance(defs, dict):
        raise SchemaError(("$defs",), "needs an object")
    for name in added:
        if name in defs:
            raise SchemaError(("$defs", name), "is also the name of a reference")
    return built | {"$defs": defs | added} if added else built


def _definitions(name: str, document: dict[str, Any]) -> dict[str, Any]:
    """Return a referenced document and its own definitions, renamed so that they cannot meet others."""
    own = document.get("$defs", {})
    targets = {local_reference(one): local_reference(f"{name}#{one}") for one in own}
    root = {word: value for word, value in document.items() if word not in ("$defs", "$id", "$schema")}
    found = {name: root} | {f"{name}#{one}": value for one, value in own.items()}
    return {one: _rewritten(value, targets, set()) for one, value in found.items()}


def _rewritten(schema: Any, targets: Mapping[str, str], used: set[str]) -> Any:
    """Return a schema in which each `$ref` of `targets` points to its new place."""
    if not isinstance(schema, dict):
        return schema
    built: dict[str, Any] = {}
    for word, value in schema.items():
        if word == "$ref" and isinstance(value, str) and value in targets:
            used.add(value)
            built[word] = targets[value]
        elif word in ONE:
            built[word] = _rewritten(value, targets, used)
        elif word in MANY and isinstance(value, list):
            built[word] = [_rewritten(one, targets, used) for one in value]
        elif word in _NAMED and isinstance(value, dict):
            built[word] = {name: _rewritten(one, targets, used) for name, one in value.items()}
        else:
            built[word] = value
    return built
