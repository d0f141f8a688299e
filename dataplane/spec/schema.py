"""Schemas of sources: validate JSON Schema documents and compile them to checks of events. Pure.

Ingest runs tenants' schemas against every event, so registration bounds everything: bytes, levels, parts with each
`$ref` expanded, patterns, and how many parts check one item. Nothing is ever fetched.
"""

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import jsonschema_rs
from jsonschema_rs import Draft202012Validator, RegexOptions

from dataplane.spec.effort import Limits, crowd, limits_of

MAX_BYTES: Final = 64 * 1024
MAX_LEVELS: Final = 64
MAX_PARTS: Final = 5_000
MAX_PATTERNS: Final = 100
MAX_CROWD: Final = 100  # parts that may check one item
DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FORMATS: Final = _words("date-time date time duration email hostname ipv4 ipv6 uri uri-reference uuid json-pointer")
# Keywords whose value is a schema (ONE), a list of schemas (MANY) or schemas by name (NAMED).
ONE: Final = _words(
    "additionalProperties items not if then else contains propertyNames unevaluatedItems unevaluatedProperties"
)
MANY: Final = _words("allOf anyOf oneOf prefixItems")
NAMED: Final = _words("properties patternProperties dependentSchemas")
PLAIN: Final = _words(
    "type enum const required dependentRequired minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength "
    "maxLength pattern format minItems maxItems uniqueItems minContains maxContains minProperties maxProperties"
)
# Annotations, which do not affect validation.
NOTES: Final = _words(
    "title description default examples deprecated readOnly writeOnly $comment contentEncoding contentMediaType "
    "contentSchema"
)
_ROOT: Final = frozenset(("$schema", "$id", "$defs"))
_LOCAL: Final = "#/$defs/"
# The engine is linear in the text; a pattern that expands to more than this is refused (a{1000}{1000}).
_PATTERNS: Final = RegexOptions(size_limit=1 << 18, dfa_size_limit=1 << 18)
_MASK: Final = "the value"
_SHOWN: Final = 200
SchemaPath = tuple[str, ...]


class SchemaError(Exception):
    """The document is not an accepted schema. `path`: keys that lead to the error; `reason`: what is needed there."""

    def __init__(self, path: SchemaPath, reason: str) -> None:
        super().__init__(f"{pointer_of(path) or 'the schema'}: {reason}")
        self.path = path
        self.reason = reason


class SchemaMismatch(NamedTuple):
    """First error in an event: its place as a JSON pointer, and the reason without the event's value."""

    pointer: str
    reason: str


class Check:
    """Compiled schema. `limits`: maximum size of the events, which bounds the time of a check."""

    def __init__(self, schema: Any) -> None:
        """Compile a schema whose `$ref`s are expanded. Raises SchemaError if it cannot run."""
        self._validator = _validator(schema, ())
        self.limits: Limits = limits_of(schema)

    def __call__(self, value: Any) -> SchemaMismatch | None:
        """Return the first mismatch of an event; None if it fits. A hot path."""
        if self._validator.is_valid(value):
            return None
        try:
            self._validator.validate(value)  # only the first error: an event could have millions
        except jsonschema_rs.ValidationError as error:
            return _misfit(error)
        return None


def read_schema(text: str) -> Any:
    """Return the JSON in a text from a person. Raises SchemaError if it is too large or not JSON."""
    if len(text.encode(errors="replace")) > MAX_BYTES:
        raise SchemaError((), f"needs at most {MAX_BYTES} bytes")
    try:
        return json.loads(text, object_pairs_hook=unique_pairs)
    except json.JSONDecodeError as exc:
        raise SchemaError((), f"needs JSON: line {exc.lineno} column {exc.colno}: {exc.msg}") from exc
    except RecursionError as exc:
        raise SchemaError((), f"needs at most {MAX_LEVELS} levels") from exc
    except ValueError as exc:  # also an integer with too many digits
        raise SchemaError((), f"needs JSON: {exc}") from exc


def checked_schema(document: Any) -> str:
    """Return the document as the JSON text to store. Raises SchemaError, with the path, if ingest could not run it."""
    if not isinstance(document, dict):
        raise SchemaError((), "needs an object")
    if levels(document) > MAX_LEVELS:
        raise SchemaError((), f"needs at most {MAX_LEVELS} levels")
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size = len(text.encode())
    except ValueError as exc:  # also a lone surrogate
        raise SchemaError((), "contains a number or a character that JSON does not allow") from exc
    if size > MAX_BYTES:
        raise SchemaError((), f"needs at most {MAX_BYTES} bytes, got {size}")
    _check_shape(document)
    if crowd(expanded(document)) > MAX_CROWD:
        raise SchemaError((), f"needs fewer alternatives inside of lists: at most {MAX_CROWD} parts may check one item")
    compile_schema(text)
    return text


def expanded(document: dict[str, Any]) -> Any:
    """Return the schema with each `$ref` expanded and without annotations. Raises SchemaError."""
    reader = _Reader(document.get("$defs", {}))
    for name in document.get("$defs", {}):
        reader.follow(local_reference(name), ("$defs", name))
    root = {word: value for word, value in document.items() if word not in _ROOT}
    return reader.read(root, ())


@lru_cache(maxsize=1_000)
def compile_schema(text: str) -> Check:
    """Return the compiled check of a stored schema. Raises SchemaError."""
    return Check(expanded(json.loads(text)))


def pointer_of(path: SchemaPath) -> str:
    """Return the JSON pointer (RFC 6901) of a path."""
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path)


def path_of(pointer: str) -> SchemaPath:
    """Return the path of a JSON pointer (RFC 6901)."""
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])


def local_reference(name: str) -> str:
    """Return the `$ref` to a definition of the same document."""
    return "#" + pointer_of(("$defs", name)).replace("%", "%25")


def definition_name(reference: str) -> str | None:
    """Return the name of the definition in the same document that a `$ref` names; None for any other reference."""
    if not reference.startswith(_LOCAL):
        return None
    return unquote(reference.removeprefix(_LOCAL)).replace("~1", "/").replace("~0", "~")


def _validator(schema: Any, path: SchemaPath) -> Draft202012Validator:
    try:
        return Draft202012Validator(
            schema,
            validate_formats=True,
            ignore_unknown_formats=False,
            pattern_options=_PATTERNS,
            mask=_MASK,
            offline=True,
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as exc:
        raise SchemaError(path, f"cannot be run: {str(exc)[:_SHOWN]}") from exc


def _misfit(error: jsonschema_rs.ValidationError) -> SchemaMismatch:
    path, kind = tuple(map(str, error.instance_path)), error.kind
    match kind.name:
        case "required":
            return _shown((*path, kind.as_dict()["property"]), "is required, but missing")
        case "additionalProperties" | "unevaluatedProperties":
            return _shown((*path, kind.as_dict()["unexpected"][0]), "is not a field of the schema")
        case "propertyNames":
            return _shown(path, "has a field whose name the schema does not allow")
        case "falseSchema":
            return _shown(path, "is not allowed")
    return _shown(path, error.message)


def _shown(path: SchemaPath, reason: str) -> SchemaMismatch:
    return SchemaMismatch(pointer_of(path)[:_SHOWN], reason[:_SHOWN])


def unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of a JSON object, for `object_pairs_hook`. Raises ValueError for a duplicate key."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a duplicate key")
    return found


def levels(document: Any) -> int:
    """Return the depth of a document, without recursion: it may be deeper than Python's recursion limit."""
    deepest, left = 0, [(document, 1)]
    while left:
        value, level = left.pop()
        deepest = max(deepest, level)
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        left += [(one, level + 1) for one in inner]
    return deepest


def _check_shape(document: dict[str, Any]) -> None:
    """Check a document against the draft's own meta-schema. Raises SchemaError."""
    if document.get("$schema", DRAFT) not in (DRAFT, DRAFT + "#"):
        raise SchemaError(("$schema",), f"needs {DRAFT}, or none")
    try:
        jsonschema_rs.meta.validate({word: value for word, value in document.items() if word != "$schema"})
    except jsonschema_rs.ValidationError as exc:
        path = tuple(map(str, exc.instance_path))
        is_type = path[-1:] == ("type",)
        raise SchemaError(path, f"needs types of {', '.join(TYPES)}" if is_type else exc.message[:_SHOWN]) from exc


class _Reader:
    """Expands one document and counts its parts and patterns."""

    def __init__(self, defs: dict[str, Any]) -> None:
        self._defs = defs
        self._parts = self._patterns = 0
        self._open: list[str] = []  # definitions that are being expanded

    def read(self, schema: Any, path: SchemaPath) -> Any:
        """Return a schema with its `$ref`s expanded. Raises SchemaError."""
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise SchemaError(path, f"needs at most {MAX_PARTS} parts, with every $ref expanded")
        if isinstance(schema, bool):
            return schema
        built = dict(self._words(schema, path))
        if (target := schema.get("$ref")) is None:
            return built
        found = self.follow(target, (*path, "$ref"))
        return built | {"allOf": [*built.get("allOf", ()), found]} if built else found

    def follow(self, target: str, path: SchemaPath) -> Any:
        """Return the expanded definition that a `$ref` names. Raises SchemaError."""
        name = definition_name(target)
        if name is None or name not in self._defs:
            raise SchemaError(path, "needs #/$defs/ and the name of a definition in this document; nothing is fetched")
        if name in self._open:
            raise SchemaError(path, f"is circular: {' > '.join([*self._open, name])[:_SHOWN]}")
        self._open.append(name)
        found = self.read(self._defs[name], ("$defs", name))
        self._open.pop()
        return found

    def _words(self, schema: dict[str, Any], path: SchemaPath) -> Iterator[tuple[str, Any]]:
        for word, value in schema.items():
            here = (*path, word)
            if word in ONE:
                yield word, self.read(value, here)
            elif word in MANY:
                yield word, [self.read(one, (*here, str(place))) for place, one in enumerate(value)]
            elif word in NAMED:
                yield word, self._by_name(word, value, here)
            elif word in PLAIN:
                self._check(word, value, here)
                yield word, value
            elif word not in NOTES and word != "$ref" and not word.startswith("x-"):
                raise SchemaError(here, "is not a supported keyword; your own annotations begin with x-")

    def _by_name(self, word: str, schemas: dict[str, Any], path: SchemaPath) -> dict[str, Any]:
        if word == "patternProperties":
            for pattern in schemas:
                self._check("pattern", pattern, (*path, pattern))
        return {name: self.read(one, (*path, name)) for name, one in schemas.items()}

    def _check(self, word: str, value: Any, path: SchemaPath) -> None:
        if word == "format" and value not in FORMATS:
            raise SchemaError(path, f"needs one of {', '.join(sorted(FORMATS))}")
        if word == "pattern":
            self._patterns += 1
            if self._patterns > MAX_PATTERNS:
                raise SchemaError(path, f"needs at most {MAX_PATTERNS} patterns, with every $ref expanded")
            _check_pattern(value, path)


def _check_pattern(pattern: str, path: SchemaPath) -> None:
    try:
        _validator({"pattern": pattern}, path)
    except SchemaError as exc:
        reason = "needs a pattern that runs in linear time: no look-around, no back-reference, no huge repetition"
        raise SchemaError(path, reason) from exc
