"""Compare versions of a schema: list every place at which a reader cannot read what a writer wrote. Pure.

Avro follows the specification's schema resolution, with the reasons of Avro's Java SchemaCompatibility. It is stricter
in two respects: logical types must agree, because a decimal of another scale would silently be another number; and the
branch that a reader of a union chooses decides, because readers try no other one.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from dataplane.schemas.avro import NO_DEFAULT, AvroType, LogicalType, tree_of
from dataplane.schemas.types import Compatibility, Incompatibility, ParsedSchema, SchemaType
from dataplane.spec.compatible import changes
from dataplane.spec.schema import SchemaPath, pointer_of

MAX_COMPARISONS: Final = 20_000  # of two types, in one comparison of two schemas
_PROMOTIONS: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_VERSION: Final = re.compile(r"v([1-9][0-9]{0,8})")
_SHOWN: Final = 200


def incompatibilities(
    level: Compatibility, new: ParsedSchema, earlier: Sequence[tuple[int, ParsedSchema]]
) -> tuple[Incompatibility, ...]:
    """Return every place at which a new version breaks a subject's rule; empty if the version is accepted.

    earlier: number and schema of the versions so far, oldest first. The levels that are not transitive compare with the
    newest only. Each finding has the number of the earlier version.
    """
    if level is Compatibility.NONE:
        return ()
    found: list[Incompatibility] = []
    for number, old in earlier if level.transitive else earlier[-1:]:
        if new.type is not old.type:
            message = f"the schema is of type {new.type}, and version {number} is of type {old.type}"
            found.append(Incompatibility("", new.type, old.type, "SCHEMA_TYPE_MISMATCH", message, number))
            continue
        if level.backward:
            found += unreadable(new, old, number)
        if level.forward:
            found += unreadable(old, new, number)
    return tuple(dict.fromkeys(found))


def unreadable(reader: ParsedSchema, writer: ParsedSchema, version: int | None = None) -> tuple[Incompatibility, ...]:
    """Return every place at which `reader` cannot read what `writer` wrote."""
    if reader.document == writer.document:
        return ()
    if reader.type is SchemaType.JSON:
        return tuple(_json(json.loads(reader.document), json.loads(writer.document), version))
    return tuple(_Comparison(version).compare(tree_of(reader.document), tree_of(writer.document), ()))


def suggested_name(name: str) -> str:
    """Return the name for a breaking change: com.shop.Order -> com.shop.v2.Order -> com.shop.v3.Order."""
    *namespace, short = name.split(".")
    version = _VERSION.fullmatch(namespace[-1]) if namespace else None
    if version is None:
        return ".".join((*namespace, "v2", short))
    return ".".join((*namespace[:-1], f"v{int(version[1]) + 1}", short))


def _json(reader: dict[str, Any], writer: dict[str, Any], version: int | None) -> Iterator[Incompatibility]:
    for change in changes(writer, reader):
        shown = (_fragment(reader, change.path), _fragment(writer, change.path))
        yield Incompatibility(pointer_of(change.path), *shown, "JSON_SCHEMA_NARROWED", str(change), version)


def _fragment(document: Any, path: SchemaPath) -> str:
    """Return the JSON at a path of a schema; empty if there is none."""
    for part in path:
        if isinstance(document, dict) and part in document:
            document = document[part]
        elif isinstance(document, list) and part.isdigit() and int(part) < len(document):
            document = document[int(part)]
        else:
            return ""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))[:_SHOWN]


class _Comparison:
    """One comparison of two Avro schemas; it compares each pair of named types once, which ends recursion."""

    def __init__(self, version: int | None) -> None:
        self._version = version
        self._seen: set[tuple[str, str]] = set()
        self._left = MAX_COMPARISONS

    def compare(self, reader: AvroType, writer: AvroType, path: SchemaPath) -> Iterator[Incompatibility]:
        """Yield the places below a pair of types at which reading fails."""
        self._left -= 1
        if self._left < 0:
            if self._left == -1:
                yield self._found(path, reader, writer, "TOO_COMPLEX", "the schemas are too complex to compare")
            return
        if writer.kind == "union":
            for place, branch in enumerate(writer.branches):
                yield from self._branch(reader, branch, (*path, str(place)))
        else:
            yield from self._branch(reader, writer, path)

    def _branch(self, reader: AvroType, writer: AvroType, path: SchemaPath) -> Iterator[Incompatibility]:
        if reader.kind != "union":
            yield from self._pair(reader, writer, path)
            return
        chosen = chosen_branch(reader, writer)
        if chosen is None:
            message = f"the reader's union has no branch for {writer}"
            yield self._found(path, reader, writer, "MISSING_UNION_BRANCH", message)
        else:
            yield from self._pair(chosen, writer, path)

    def _pair(self, reader: AvroType, writer: AvroType, path: SchemaPath) -> Iterator[Incompatibility]:
        if reader.kind != writer.kind:
            if reader.kind not in _PROMOTIONS.get(writer.kind, ()):
                message = f"a reader of {reader} cannot read {writer}"
                yield self._found(path, reader, writer, "TYPE_MISMATCH", message)
                return
        elif reader.name:
            yield from self._named(reader, writer, path)
        elif reader.kind in ("array", "map"):
            word = "items" if reader.kind == "array" else "values"
            yield from self.compare(reader.inner, writer.inner, (*path, word))
        yield from self._logical(reader, writer, path)

    def _named(self, reader: AvroType, writer: AvroType, path: SchemaPath) -> Iterator[Incompatibility]:
        if (reader.name, writer.name) in self._seen:
            return
        self._seen.add((reader.name, writer.name))
        if not _same_name(reader, writer):
            message = f"the reader's {reader} has another name than the writer's {writer}, and no alias for it"
            yield self._found((*path, "name"), reader, writer, "NAME_MISMATCH", message)
        match reader.kind:
            case "record":
                yield from self._fields(reader, writer, path)
            case "enum":
                yield from self._symbols(reader, writer, path)
            case "fixed" if reader.size != writer.size:
                message = f"the reader has {reader.size} bytes, the writer {writer.size}"
                yield self._found((*path, "size"), reader, writer, "FIXED_SIZE_MISMATCH", message)

    def _fields(self, reader: AvroType, writer: AvroType, path: SchemaPath) -> Iterator[Incompatibility]:
        written = {one.name: one for one in writer.fields}
        names = {one.name for one in reader.fields}  # an alias takes no field that the reader also has by name
        for place, one in enumerate(reader.fields):
            here = (*path, "fields", str(place))
            aliases = (name for name in dict.fromkeys(one.aliases) if name not in names)
            sources = [written[name] for name in (one.name, *aliases) if name in written]
            if len(sources) > 1:
                message = f"field {one.name} has aliases for {len(sources)} fields of the writer"
                yield self._found(here, one.type, writer, "AMBIGUOUS_ALIAS", message)
            elif sources:
                yield from self.compare(one.type, sources[0].type, (*here, "type"))
            elif one.default is NO_DEFAULT:
                message = f"field {one.name} has no default, and the writer has no such field"
                yield self._found(here, one.type, writer, "READER_FIELD_MISSING_DEFAULT_VALUE", message)

    def _symbols(self, reader: AvroType, writer: AvroType, path: SchemaPath) -> Iterator[Incompatibility]:
        missing = sorted(set(writer.symbols) - set(reader.symbols))
        if missing and reader.default is None:
            message = f"the reader has no symbol {', '.join(missing)[:_SHOWN]}, and no default symbol"
            yield self._found((*path, "symbols"), reader, writer, "MISSING_ENUM_SYMBOLS", message)

    def _logical(self, reader: AvroType, writer: AvroType, path: SchemaPath) -> Iterator[Incompatibility]:
        """Yield a finding if the reader gives the value a meaning that the writer did not; no meaning is harmless."""
        wanted, written = reader.logical, writer.logical
        if wanted is None or wanted == written or (written is not None and _widens(written, wanted)):
            return
        message = f"the reader expects {wanted}, and the writer writes {written or f'plain {writer.kind}'}"
        yield self._found((*path, "logicalType"), reader, writer, "LOGICAL_TYPE_MISMATCH", message)

    def _found(
        self, path: SchemaPath, reader: AvroType, writer: AvroType, reason: str, message: str
    ) -> Incompatibility:
        return Incompatibility(pointer_of(path), str(reader), str(writer), reason, message, self._version)


def chosen_branch(reader: AvroType, writer: AvroType) -> AvroType | None:
    """Return the branch of a reader's union for a value of `writer`; None if there is none.

    It is the branch of the same type, or else the first that matches. The specification names the first that matches,
    even if the value is promoted to it; Java's reader prefers the same type, and so a schema reads itself.
    """
    same = (one for one in reader.branches if (one.kind, one.name) == (writer.kind, writer.name))
    return next(same, None) or next((one for one in reader.branches if matches(one, writer)), None)


def matches(reader: AvroType, writer: AvroType) -> bool:
    """Return True if two types other than unions match, by the specification's rules.

    Only the outside is compared: fields, symbols and logical types are not.
    """
    if reader.kind != writer.kind:
        return reader.kind in _PROMOTIONS.get(writer.kind, ())
    match reader.kind:
        case "array" | "map":
            inner, written = reader.inner, writer.inner
            return "union" in (inner.kind, written.kind) or matches(inner, written)
        case "fixed":
            return reader.size == writer.size and _same_name(reader, writer)
        case "record" | "enum":
            return _same_name(reader, writer)
    return True


def _widens(written: LogicalType, wanted: LogicalType) -> bool:
    """Return True for a decimal with more digits before the point."""
    decimals = wanted.name == written.name == "decimal"
    return decimals and wanted.scale == written.scale and wanted.precision >= written.precision


def _same_name(reader: AvroType, writer: AvroType) -> bool:
    return reader.short_name == writer.short_name or writer.name in reader.aliases
