"""Schemas of sources: which JSON Schema documents are taken, and the check that one becomes. Pure.

Ingest runs what tenants write here against every event, so everything is bounded when it is registered: bytes, levels,
parts with each `$ref` written out, patterns, and how many parts look at one item. Nothing is ever fetched.
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
MAX_CROWD: Final = 100  # parts that may look at one item
DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FORMATS: Final = _words("date-time date time duration email hostname ipv4 ipv6 uri uri-reference uuid json-pointer")
# Where other schemas stand: one, a list of them, or one by name.
ONE: Final = _words(
    "additionalProperties items not if then else contains propertyNames unevaluatedItems unevaluatedProperties"
)
MANY: Final = _words("allOf anyOf oneOf prefixItems")
NAMED: Final = _words("properties patternProperties dependentSchemas")
PLAIN: Final = _words(
    "type enum const required dependentRequired minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength "
    "maxLength pattern format minItems maxItems uniqueItems minContains maxContains minProperties maxProperties"
)
# What says something to people only.
NOTES: Final = _words(
    "title description default examples deprecated readOnly writeOnly $comment contentEncoding contentMediaType "
    "contentSchema"
)
_ROOT: Final = frozenset(("$schema", "$id", "$defs"))
_LOCAL: Final = "#/$defs/"
# The engine is linear in the text; a pattern that unfolds to more than this is refused (a{1000}{1000}).
_PATTERNS: Final = RegexOptions(size_limit=1 << 18, dfa_size_limit=1 << 18)
_MASK: Final = "the value"
_SHOWN: Final = 200
Path = tuple[str, ...]


class SchemaError(Exception):
    """The document is no schema that we take. `path` leads into it, `reason` says what was needed."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{pointer_of(path) or 'the schema'}: {reason}")
        self.path = path
        self.reason = reason


class Misfit(NamedTuple):
    """Why an event does not fit: where in it, and what is wrong there, without what stands there."""

    pointer: str
    reason: str


class Check:
    """A schema that is ready to be held against events. `limits`: how large these may be, so that it takes no long."""

    def __init__(self, schema: Any) -> None:
        """Raises SchemaError."""
        self._validator = _validator(schema, ())
        self.limits: Limits = limits_of(schema)

    def __call__(self, value: Any) -> Misfit | None:
        """Return why the event does not fit; None if it does. A hot path."""
        if self._validator.is_valid(value):
            return None
        try:
            self._validator.validate(value)  # the first thing that is wrong: all of them could be millions
        except jsonschema_rs.ValidationError as error:
            return _misfit(error)
        return None


def read_schema(text: str) -> Any:
    """The JSON that somebody typed. Raises SchemaError."""
    if len(text.encode(errors="replace")) > MAX_BYTES:
        raise SchemaError((), f"needs at most {MAX_BYTES} bytes")
    try:
        return json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as exc:
        raise SchemaError((), f"needs JSON: line {exc.lineno} column {exc.colno}: {exc.msg}") from exc
    except RecursionError as exc:
        raise SchemaError((), f"needs at most {MAX_LEVELS} levels") from exc
    except ValueError as exc:  # also a whole number too long to read
        raise SchemaError((), f"needs JSON: {exc}") from exc


def checked_schema(document: Any) -> str:
    """The document as it is kept. Raises SchemaError, naming the place, for one that ingest would not run."""
    if not isinstance(document, dict):
        raise SchemaError((), "needs an object")
    if _levels(document) > MAX_LEVELS:
        raise SchemaError((), f"needs at most {MAX_LEVELS} levels")
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size = len(text.encode())
    except ValueError as exc:  # also half a character
        raise SchemaError((), "holds a number or a character that JSON cannot carry") from exc
    if size > MAX_BYTES:
        raise SchemaError((), f"needs at most {MAX_BYTES} bytes, got {size}")
    _check_shape(document)
    if crowd(expanded(document)) > MAX_CROWD:
        raise SchemaError(
            (), f"needs fewer alternatives inside of lists: at most {MAX_CROWD} parts may look at one item"
        )
    compile_schema(text)
    return text


def expanded(document: dict[str, Any]) -> Any:
    """The schema with each `$ref` written out and without notes. Raises SchemaError."""
    reader = _Reader(document.get("$defs", {}))
    for name in document.get("$defs", {}):
        reader.follow(_LOCAL + name.replace("~", "~0").replace("/", "~1").replace("%", "%25"), ("$defs", name))
    root = {word: value for word, value in document.items() if word not in _ROOT}
    return reader.read(root, ())


@lru_cache(maxsize=1_000)
def compile_schema(text: str) -> Check:
    """Return the check that a kept schema becomes. Raises SchemaError."""
    return Check(expanded(json.loads(text)))


def pointer_of(path: Path) -> str:
    """RFC 6901."""
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path)


def _validator(schema: Any, path: Path) -> Draft202012Validator:
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


def _misfit(error: jsonschema_rs.ValidationError) -> Misfit:
    path, kind = tuple(map(str, error.instance_path)), error.kind
    match kind.name:
        case "required":
            return _shown((*path, kind.as_dict()["property"]), "is required, and missing")
        case "additionalProperties" | "unevaluatedProperties":
            return _shown((*path, kind.as_dict()["unexpected"][0]), "is no field that the schema knows")
        case "propertyNames":
            return _shown(path, "has a field whose name the schema does not take")
        case "falseSchema":
            return _shown(path, "is not taken")
    return _shown(path, error.message)


def _shown(path: Path, reason: str) -> Misfit:
    return Misfit(pointer_of(path)[:_SHOWN], reason[:_SHOWN])


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _levels(document: Any) -> int:
    """Without calling itself: what came may be deeper than calls may be."""
    deepest, left = 0, [(document, 1)]
    while left:
        value, level = left.pop()
        deepest = max(deepest, level)
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        left += [(one, level + 1) for one in inner]
    return deepest


def _check_shape(document: dict[str, Any]) -> None:
    """Whether every word has a value of its kind, by the draft's own schema."""
    if document.get("$schema", DRAFT) not in (DRAFT, DRAFT + "#"):
        raise SchemaError(("$schema",), f"needs {DRAFT}, or none")
    try:
        jsonschema_rs.meta.validate({word: value for word, value in document.items() if word != "$schema"})
    except jsonschema_rs.ValidationError as exc:
        path = tuple(map(str, exc.instance_path))
        is_type = path[-1:] == ("type",)
        raise SchemaError(path, f"needs types of {', '.join(TYPES)}" if is_type else exc.message[:_SHOWN]) from exc


class _Reader:
    """Reads one document, and counts what it comes to."""

    def __init__(self, defs: dict[str, Any]) -> None:
        self._defs = defs
        self._parts = self._patterns = 0
        self._open: list[str] = []  # the definitions that are being written out

    def read(self, schema: Any, path: Path) -> Any:
        """The schema, written out."""
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise SchemaError(path, f"needs at most {MAX_PARTS} parts, with every $ref written out")
        if isinstance(schema, bool):
            return schema
        built = dict(self._words(schema, path))
        if (target := schema.get("$ref")) is None:
            return built
        found = self.follow(target, (*path, "$ref"))
        return built | {"allOf": [*built.get("allOf", ()), found]} if built else found

    def follow(self, target: str, path: Path) -> Any:
        """The definition that a `$ref` names, written out."""
        name = unquote(target.removeprefix(_LOCAL)).replace("~1", "/").replace("~0", "~")
        if not target.startswith(_LOCAL) or name not in self._defs:
            raise SchemaError(path, "needs #/$defs/ and the name of a definition in this document; nothing is fetched")
        if name in self._open:
            raise SchemaError(path, f"leads back to itself: {' > '.join([*self._open, name])[:_SHOWN]}")
        self._open.append(name)
        found = self.read(self._defs[name], ("$defs", name))
        self._open.pop()
        return found

    def _words(self, schema: dict[str, Any], path: Path) -> Iterator[tuple[str, Any]]:
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
                raise SchemaError(here, "is no word that we take; notes of your own begin with x-")

    def _by_name(self, word: str, schemas: dict[str, Any], path: Path) -> dict[str, Any]:
        if word == "patternProperties":
            for pattern in schemas:
                self._check("pattern", pattern, (*path, pattern))
        return {name: self.read(one, (*path, name)) for name, one in schemas.items()}

    def _check(self, word: str, value: Any, path: Path) -> None:
        if word == "format" and value not in FORMATS:
            raise SchemaError(path, f"needs one of {', '.join(sorted(FORMATS))}")
        if word == "pattern":
            self._patterns += 1
            if self._patterns > MAX_PATTERNS:
                raise SchemaError(path, f"needs at most {MAX_PATTERNS} patterns, with every $ref written out")
            _check_pattern(value, path)


def _check_pattern(pattern: str, path: Path) -> None:
    try:
        _validator({"pattern": pattern}, path)
    except SchemaError as exc:
        reason = "needs a pattern that runs in linear time: no look-around, no back reference, no huge repetition"
        raise SchemaError(path, reason) from exc
