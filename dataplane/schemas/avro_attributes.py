"""Attributes of Avro's types and fields: names, aliases, symbols and numbers, checked as they are read. Pure."""

import re
from collections.abc import Iterable
from typing import Any, Final

from dataplane.schemas.types import SchemaRejectedError
from dataplane.spec.schema import SchemaPath, pointer_of

MAX_NAME: Final = 1_000
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def rejected(path: SchemaPath, reason: str) -> SchemaRejectedError:
    """Return the error for a path."""
    return SchemaRejectedError(pointer_of(path), reason)


def is_name(text: str) -> bool:
    """Return True if a text is a name without a namespace."""
    return len(text) <= MAX_NAME and _NAME.fullmatch(text) is not None


def is_full_name(text: str) -> bool:
    """Return True if a text is a name, or names joined by dots."""
    return len(text) <= MAX_NAME and all(_NAME.fullmatch(one) for one in text.split("."))


def full_name(name: str, namespace: str) -> str:
    """Return the full name of a name that is used within a namespace."""
    return name if "." in name or not namespace else f"{namespace}.{name}"


def namespace_of(name: str) -> str:
    """Return the namespace of a full name."""
    return name.rpartition(".")[0]


def doc_of(schema: dict[str, Any], path: SchemaPath) -> str | None:
    """Return the documentation of a type or field. Raises SchemaRejectedError."""
    doc = schema.get("doc")
    if doc is not None and not isinstance(doc, str):
        raise rejected((*path, "doc"), "needs a text")
    return doc


def _listed(schema: dict[str, Any], word: str, path: SchemaPath) -> list[str]:
    found = schema.get(word, [])
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise rejected((*path, word), "needs a list of names")
    return found


def aliases_of(schema: dict[str, Any], path: SchemaPath, namespace: str) -> tuple[str, ...]:
    """Return the full names of the aliases of a type. Raises SchemaRejectedError."""
    for place, one in enumerate(found := _listed(schema, "aliases", path)):
        if not is_full_name(one):
            raise rejected((*path, "aliases", str(place)), "needs a name of letters, digits and _")
    return tuple(full_name(one, namespace) for one in found)


def field_aliases_of(schema: dict[str, Any], path: SchemaPath) -> tuple[str, ...]:
    """Return the aliases of a field. Raises SchemaRejectedError."""
    for place, one in enumerate(found := _listed(schema, "aliases", path)):
        if not is_name(one):
            raise rejected((*path, "aliases", str(place)), "needs a name of letters, digits and _")
    return tuple(found)


def symbols_of(schema: dict[str, Any], path: SchemaPath) -> tuple[str, ...]:
    """Return the symbols of an enum. Raises SchemaRejectedError."""
    if "symbols" not in schema:
        raise rejected(path, "an enum needs symbols")
    seen: set[str] = set()
    for place, one in enumerate(found := _listed(schema, "symbols", path)):
        if not is_name(one):
            raise rejected((*path, "symbols", str(place)), "needs letters, digits and _, the first not a digit")
        if one in seen:
            raise rejected((*path, "symbols", str(place)), f"the enum has {one} twice")
        seen.add(one)
    return tuple(found)


def enum_default_of(schema: dict[str, Any], symbols: Iterable[str], path: SchemaPath) -> str | None:
    """Return the default symbol of an enum. Raises SchemaRejectedError."""
    default = schema.get("default")
    if default is not None and default not in symbols:
        raise rejected((*path, "default"), "needs one of the enum's symbols")
    return default


def whole_number(value: Any, path: SchemaPath, least: int, most: int) -> int:
    """Return a whole number within bounds. Raises SchemaRejectedError."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise rejected(path, f"needs a whole number of {least} to {most}")
    return value
