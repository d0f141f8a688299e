"""Generated proof: a pair of Avro schemas is compatible exactly if fastavro reads all that the writer wrote."""

import io
import json
import random
from collections import Counter
from typing import Any

import fastavro
import pytest

from dataplane.schemas.avro import AvroType, tree_of
from dataplane.schemas.compatibility import unreadable
from dataplane.schemas.parse import parse
from dataplane.schemas.types import ParsedSchema, SchemaRejectedError, SchemaType
from tests.support.avro_schemas import (
    MEANING,
    OTHER_KIND,
    SHORT_ALIAS,
    SchemaMaker,
    UnreadableError,
    ValueMaker,
    changed,
    resolve,
    without_logical,
)

VALUES = 40
# Deviations of fastavro 1.13.1 from the specification, whose resolution decides those pairs.
DEVIATIONS = {
    MEANING: "reads with the writer's logical type and ignores the reader's",
    SHORT_ALIAS: "an alias without a namespace matches a name in any namespace",
    OTHER_KIND: "compares only the names of a record, an enum and a fixed",
}


def pairs(seed: int, count: int) -> list[tuple[ParsedSchema, ParsedSchema]]:
    """Return reader and writer; nine of ten readers are a writer after a few changes."""
    rng = random.Random(seed)
    found: list[tuple[ParsedSchema, ParsedSchema]] = []
    while len(found) < count:
        written = SchemaMaker(rng).schema()
        read = changed(written, rng) if rng.random() < 0.9 else SchemaMaker(rng).schema()
        try:
            reader, writer = parse(SchemaType.AVRO, json.dumps(read)), parse(SchemaType.AVRO, json.dumps(written))
        except SchemaRejectedError:
            continue  # a change can make a schema that is none
        found.append((reader, writer))
    return found


def read_by_fastavro(reader: ParsedSchema, writer: ParsedSchema, value: Any) -> Any:
    documents = without_logical(writer.document), without_logical(reader.document)
    written = io.BytesIO()
    fastavro.schemaless_writer(written, documents[0], value)
    written.seek(0)
    try:
        return fastavro.schemaless_reader(written, *documents)
    except Exception as exc:  # the proof compares, and reports each kind
        return exc


def read_by_specification(reader: AvroType, writer: AvroType, value: Any) -> Any:
    try:
        return resolve(reader, writer, value)
    except UnreadableError as exc:
        return exc


def plain(value: Any) -> Any:
    """Return a value without the difference of text and bytes: fastavro promotes where a union has both."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value.decode() if isinstance(value, bytes) and value.isascii() else value


def deviation(expected: Any, got: Any) -> str | None:
    """Return the known deviation of fastavro that explains a difference; None if there is none."""
    if isinstance(got, Exception) or not isinstance(expected, UnreadableError):
        return None
    return next((reason for part, reason in DEVIATIONS.items() if part in str(expected)), None)


def compare(reader: ParsedSchema, writer: ParsedSchema, seen: Counter[str]) -> str | None:
    """Return how a pair disagrees; None if it does not. Counts the deviations of fastavro in `seen`."""
    trees = tree_of(reader.document), tree_of(writer.document)
    maker, is_compatible = ValueMaker(random.Random(VALUES)), not unreadable(reader, writer)
    failed = None
    for _ in range(VALUES):
        try:
            value = maker.value(trees[1])
        except IndexError:  # a writer of an empty union writes nothing
            break
        expected, got = read_by_specification(*trees, value), read_by_fastavro(reader, writer, value)
        agree = type(expected) is UnreadableError if isinstance(got, Exception) else plain(got) == plain(expected)
        if not agree:
            reason = deviation(expected, got)
            if reason is None:
                return f"fastavro: {got!r}, specification: {expected!r}, value: {value!r}"
            seen[reason] += 1
        if isinstance(expected, Exception):
            failed = expected
            break
    else:
        seen["compared"] += 1
    if is_compatible and failed:
        return f"compatible, and not read: {failed}"
    if not is_compatible and not failed:
        return f"incompatible, and read: {unreadable(reader, writer)}"
    return None


def disagreements(seed: int, count: int) -> tuple[list[str], Counter[str]]:
    seen: Counter[str] = Counter()
    found = []
    for reader, writer in pairs(seed, count):
        seen["compatible" if not unreadable(reader, writer) else "incompatible"] += 1
        if problem := compare(reader, writer, seen):
            found.append(f"{problem}\n  reader {reader.document}\n  writer {writer.document}")
    return found, seen


def test_compatible_is_what_fastavro_reads():
    found, seen = disagreements(20_261_125, 300)
    assert not found, "\n".join(found[:5])
    assert seen["compatible"] > 50
    assert seen["incompatible"] > 100


@pytest.mark.long
def test_compatible_is_what_fastavro_reads_for_ten_thousand_pairs():
    found, seen = disagreements(1, 10_000)
    assert not found, "\n".join(found[:5])
    assert seen["compatible"] > 2_000
    assert seen["incompatible"] > 4_000
    # Each listed deviation occurs, so that none of them hides another one after an update of fastavro.
    assert all(seen[reason] for reason in DEVIATIONS.values()), seen
