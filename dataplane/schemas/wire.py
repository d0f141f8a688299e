"""Encode and decode events, and distinguish the framings of the wire. Pure.

Framings: Confluent's (0x00, the id of the schema in 4 bytes, Avro), Gilt's (0x81, the SHA-256 fingerprint of the schema
in 32 bytes, Avro) and Avro's object container file (dataplane.schemas.container). Everything is bounded before it is
decoded: bytes, values and levels.
"""

import json
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from io import BytesIO
from typing import Any, Final, NamedTuple

import fastavro
import msgspec

from dataplane.schemas.avro import AvroType, document_of, tree_of
from dataplane.schemas.bad_value import BadValueError
from dataplane.schemas.binary import check_binary
from dataplane.schemas.from_values import ValueReader, exact_json, exact_number
from dataplane.schemas.quick_fit import quick_fit
from dataplane.schemas.to_values import ValueStyle, present
from dataplane.schemas.types import ParsedSchema, SchemaRejectedError, SchemaType
from dataplane.spec.effort import MAX_BYTES
from dataplane.spec.schema import MAX_LEVELS, unique_pairs

CONFLUENT_MAGIC: Final = 0x00
FINGERPRINT_MAGIC: Final = 0x81
CONTAINER_MAGIC: Final = b"Obj\x01"
MEDIA_TYPES: Final = ("avro/binary", "application/avro", "application/vnd.apache.avro", "application/octet-stream")
ID_BYTES: Final = 4
FINGERPRINT_BYTES: Final = 32
_JSON: Final = msgspec.json.Encoder(decimal_format="number")
# Attributes that decide the bytes; the checks and conversions here know the rest.
_NOT_ENCODED: Final = frozenset(("logicalType", "default", "aliases", "doc"))


class Framing(StrEnum):
    """Framing in which the bytes of an event name their schema."""

    CONFLUENT = "confluent"
    FINGERPRINT = "fingerprint"
    CONTAINER = "container"


@dataclass(frozen=True, slots=True)
class FramedValue:
    """Bytes of an event after its framing. `schema_id` is Confluent's, `fingerprint` Gilt's, in hex."""

    framing: Framing
    payload: bytes
    schema_id: int | None = None
    fingerprint: str | None = None


class JsonEvent(NamedTuple):
    """An event of Avro as JSON: its value, of the types of JSON, and its text."""

    value: Any
    text: bytes


def framing_of(data: bytes) -> Framing | None:
    """Return the framing that the first bytes announce; None for others, such as JSON."""
    if data.startswith(CONTAINER_MAGIC):
        return Framing.CONTAINER
    match data[:1]:
        case b"\x00":
            return Framing.CONFLUENT
        case b"\x81":
            return Framing.FINGERPRINT
    return None


def is_avro_type(media_type: str) -> bool:
    """Return True if a media type, perhaps with parameters, announces one of the framings."""
    return media_type.partition(";")[0].strip().lower() in MEDIA_TYPES


def split(data: bytes) -> FramedValue:
    """Return an event without its framing. Raises SchemaRejectedError if there is none or it is cut off."""
    match framing_of(data):
        case Framing.CONTAINER:
            return FramedValue(Framing.CONTAINER, data)
        case Framing.CONFLUENT:
            payload = _after(data, ID_BYTES, "the id of its schema")
            return FramedValue(Framing.CONFLUENT, payload, schema_id=int.from_bytes(data[1 : 1 + ID_BYTES]))
        case Framing.FINGERPRINT:
            payload = _after(data, FINGERPRINT_BYTES, "the fingerprint of its schema")
            return FramedValue(Framing.FINGERPRINT, payload, fingerprint=data[1 : 1 + FINGERPRINT_BYTES].hex())
    raise SchemaRejectedError("", "needs to begin with the byte 0x00 or 0x81, or with Obj and 0x01")


def confluent_framed(schema_id: int, payload: bytes) -> bytes:
    """Return encoded Avro in Confluent's framing."""
    return bytes((CONFLUENT_MAGIC,)) + schema_id.to_bytes(ID_BYTES) + payload


def fingerprint_framed(fingerprint: str, payload: bytes) -> bytes:
    """Return encoded Avro in Gilt's framing. `fingerprint`: SHA-256 in hex."""
    return bytes((FINGERPRINT_MAGIC,)) + bytes.fromhex(fingerprint) + payload


def check(schema: ParsedSchema, data: bytes, now_us: int | None = None) -> None:
    """Check that the bytes are exactly one value of the schema. Raises SchemaRejectedError with the place."""
    check_binary(avro_tree(schema), data, now_us)


def decode(schema: ParsedSchema, data: bytes, now_us: int | None = None) -> Any:
    """Return the value of encoded Avro, with logical types as Decimal, datetime, date, time and UUID.

    now_us: our clock, for the clocks of TimeUuids. Raises SchemaRejectedError with the place of the first error.
    """
    return _decoded(schema, data, now_us, ValueStyle.PYTHON)


def encode(schema: ParsedSchema, value: Any, now_us: int | None = None) -> bytes:
    """Return the Avro encoding of a value of Python or JSON. Raises SchemaRejectedError with the place."""
    tree = avro_tree(schema)
    return _written(tree, _datum(tree, value, now_us))


def json_to_avro(schema: ParsedSchema, text: bytes, now_us: int | None = None) -> bytes:
    """Return the Avro encoding of an event in JSON, without loss. Raises SchemaRejectedError with the place."""
    tree = avro_tree(schema)
    return _written(tree, json_to_datum(tree, text, now_us))


def json_to_datum(tree: AvroType, text: bytes, now_us: int | None = None) -> Any:
    """Return an event in JSON as an encoder takes it: numbers and bytes below the logical types, branches by name.

    Raises SchemaRejectedError with the place.
    """
    if len(text) > MAX_BYTES:
        raise SchemaRejectedError("", f"needs at most {MAX_BYTES} bytes, got {len(text)}")
    try:
        value = json.loads(text, object_pairs_hook=unique_pairs, parse_float=exact_number, parse_constant=_constant)
    except BadValueError as exc:
        raise SchemaRejectedError("", exc.reason) from exc
    except RecursionError as exc:
        raise SchemaRejectedError("", f"needs at most {MAX_LEVELS} levels") from exc
    except ValueError as exc:  # also bytes that are not text, and an integer of too many digits
        raise SchemaRejectedError("", f"needs JSON: {exc}") from exc
    return _datum(tree, value, now_us)


def datum_to_json(tree: AvroType, datum: Any) -> bytes:
    """Return what `json_to_datum` returned as JSON, decimals as text. Raises SchemaRejectedError."""
    data = _written(tree, datum)
    return presented_as_json(tree, data, check_binary(tree, data)).text


def avro_to_json(
    schema: ParsedSchema, data: bytes, now_us: int | None = None, *, decimals_as_numbers: bool = False
) -> bytes:
    """Return encoded Avro as JSON; decimals exactly, as text or as numbers. Raises SchemaRejectedError."""
    style = ValueStyle.JSON_NUMBERS if decimals_as_numbers else ValueStyle.JSON_TEXTS
    return _JSON.encode(_decoded(schema, data, now_us, style))


def json_event(schema: ParsedSchema, data: bytes, now_us: int | None = None) -> JsonEvent:
    """Return encoded Avro as JSON, decimals exactly as text, in bounded time and memory. Raises SchemaRejectedError."""
    tree = avro_tree(schema)
    return presented_as_json(tree, data, check_binary(tree, data, now_us))


def presented_as_json(tree: AvroType, data: bytes, branches: list[int]) -> JsonEvent:
    """Return checked Avro as JSON. `branches`: of the unions, as the check found them. Raises SchemaRejectedError.

    The text may be larger than the bytes, because it repeats names: a value has at most MAX_VALUES of MAX_NAME each.
    """
    value = _presented(tree, data, branches, ValueStyle.JSON_TEXTS)
    return JsonEvent(value, _JSON.encode(value))


def check_json(schema: ParsedSchema, text: bytes, now_us: int | None = None) -> None:
    """Check that an event in JSON can be written as Avro without loss. Raises SchemaRejectedError with the place.

    text: JSON without a duplicate key and with few levels
    """
    if len(text) > MAX_BYTES:
        raise SchemaRejectedError("", f"needs at most {MAX_BYTES} bytes, got {len(text)}")
    tree = avro_tree(schema)
    try:
        if (fits := quick_fit(tree)) is not None and fits(text, now_us):
            return
        ValueReader(now_us).read(tree, exact_json(text))
    except BadValueError as exc:
        raise exc.rejected() from exc


def avro_tree(schema: ParsedSchema) -> AvroType:
    """Return the tree of an Avro schema. Raises SchemaRejectedError for a schema of another language."""
    if schema.type is not SchemaType.AVRO:
        raise SchemaRejectedError("", f"needs an Avro schema, not {schema.type}")
    return tree_of(schema.document)


def _datum(tree: AvroType, value: Any, now_us: int | None) -> Any:
    try:
        return ValueReader(now_us).read(tree, value)
    except BadValueError as exc:
        raise exc.rejected() from exc


def _written(tree: AvroType, datum: Any) -> bytes:
    written = BytesIO()
    fastavro.schemaless_writer(written, _codec(tree), datum)
    return written.getvalue()


def _decoded(schema: ParsedSchema, data: bytes, now_us: int | None, style: ValueStyle) -> Any:
    tree = avro_tree(schema)
    return _presented(tree, data, check_binary(tree, data, now_us), style)


def _presented(tree: AvroType, data: bytes, branches: list[int], style: ValueStyle) -> Any:
    raw = fastavro.schemaless_reader(BytesIO(data), _codec(tree), None)
    try:
        return present(tree, raw, branches, style)
    except BadValueError as exc:
        raise exc.rejected() from exc


@lru_cache(maxsize=1_000)
def _codec(tree: AvroType) -> Any:
    """Return the schema as fastavro takes it, without logical types: it would round and overflow."""
    return fastavro.parse_schema(_bare(json.loads(document_of(tree))), {})


def _bare(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_bare(one) for one in schema]
    if isinstance(schema, dict):
        return {word: _bare(value) for word, value in schema.items() if word not in _NOT_ENCODED}
    return schema


def _after(data: bytes, size: int, what: str) -> bytes:
    if len(data) < 1 + size:
        raise SchemaRejectedError("", f"needs {size} bytes of {what}, got {len(data) - 1}")
    return data[1 + size :]


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")
