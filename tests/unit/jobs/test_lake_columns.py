"""Typed columns of lake tables: Spark takes every row of random schemas, and rows have the values of the events."""

import json
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType, _make_type_verifier

from dataplane.jobs.lake_columns import UntypableError, typed_columns_of
from dataplane.jobs.lake_recompute import CannotRecomputeError, typed_columns
from dataplane.jobs.recompute_task import RecomputeRequest
from dataplane.plan.typed_row import ColumnsSchema, EventColumns
from dataplane.schemas.avro import LOGICAL_BASES, PRIMITIVES, AvroType, tree_of
from dataplane.schemas.columns import ColumnType, field_of
from dataplane.schemas.parse import parse
from dataplane.schemas.types import SchemaRejectedError, SchemaType
from dataplane.schemas.wire import avro_to_json, decode, json_to_avro
from dataplane.spec import ColumnsEncoding, LakeDestination
from dataplane.tables.control import ControlTable
from dataplane.tables.records import DestinationRecord, RegisteredSchema, SubjectRecord
from tests.support.avro_schemas import changed
from tests.unit.schemas.test_avro_values import avro, random_events

V2 = ColumnsEncoding("columns", "orders-value", 2)
V1 = ColumnsEncoding("columns", "orders-value", 1)


def verify(kind: ColumnType, row: Any) -> None:
    """Raise a TypeError or ValueError if Spark does not take a value, and convert it as Spark's workers do."""
    struct = StructType.fromJson({"type": "struct", "fields": [field_of("event", kind)]})
    _make_type_verifier(struct)((row,))
    struct.toInternal((row,))


def events(seed: int, count: int) -> Iterator[tuple[Any, str, bytes]]:
    """Yield schemas that columns can have, with an event in JSON."""
    for schema, data in random_events(seed, count):
        yield schema, schema.document, avro_to_json(schema, data)


def expected(node: AvroType, value: Any, whole: Any, outer: tuple[str, ...] = ()) -> Any:
    """Return a decoded value as a row has it, for a schema without unions of several types.

    whole: the same as JSON, which a record inside itself and an empty one are; outer: names of the records around it
    """
    inside = (*outer, node.name)
    found = str(value) if node.logical is not None and node.logical.name == "uuid" else value
    match node.kind:
        case "record":
            if node.name in outer or not node.fields:
                return json.dumps(whole, separators=(",", ":"), ensure_ascii=False)
            found = {one.name: expected(one.type, value[one.name], whole[one.name], inside) for one in node.fields}
        case "array":
            found = [expected(node.inner, one, other, outer) for one, other in zip(value, whole, strict=True)]
        case "map":
            found = {key: expected(node.inner, one, whole[key], outer) for key, one in value.items()}
        case "union" if value is not None:
            (branch,) = [one for one in node.branches if one.kind != "null"]
            found = expected(branch, value, whole, outer)
    return found


def has_unions_of_several(node: AvroType, seen: set[str]) -> bool:
    """Return True if a row has a struct where a decoder has a value of one of its branches."""
    if node.name:
        if node.name in seen:
            return False
        seen.add(node.name)
    if node.kind == "union":
        if len([one for one in node.branches if one.kind != "null"]) > 1:
            return True
        return any(has_unions_of_several(one, seen) for one in node.branches)
    inner = [one.type for one in node.fields] + ([node.item] if node.item is not None else [])
    return any(has_unions_of_several(one, seen) for one in inner)


def test_spark_takes_the_rows_of_random_schemas():
    for _, document, body in events(31, 500):
        columns = EventColumns(ColumnsSchema("s@1", document), None)
        row = columns(body)
        assert row.event_error is None, (document, body)
        verify(columns.type, row.event)


def test_rows_have_the_values_that_a_decoder_has():
    compared = 0
    for schema, document, body in events(32, 800):
        tree = tree_of(document)
        if has_unions_of_several(tree, set()):
            continue
        row = EventColumns(ColumnsSchema("s@1", document), None)(body)
        wanted = expected(tree, decode(schema, json_to_avro(schema, body)), json.loads(body))
        assert row.event == wanted, (document, body)
        compared += 1
    assert compared > 300


def test_rows_of_a_later_version_are_those_of_the_table():
    rng = random.Random(33)
    stored = evolutions = 0
    for _, document, body in events(34, 2_000):
        try:
            earlier = avro(changed(json.loads(document), rng))
            held = EventColumns(ColumnsSchema("s@1", earlier.document), None).type
        except SchemaRejectedError:
            continue
        columns = EventColumns(ColumnsSchema("s@2", document), held)
        row = columns(body)
        verify(columns.type, row.event)
        evolutions += columns.type != held
        stored += row.event_error is None
        if row.event_error is not None:
            assert "not stored, because the column has type" in row.event_error
    assert min(stored, evolutions) > 80


NUMBERS = st.integers(-(1 << 70), 1 << 70) | st.floats() | st.decimals(allow_nan=False, places=3).map(str)
TIMES = st.datetimes().map(datetime.isoformat) | st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat)
OTHERS = st.text() | st.uuids().map(str) | st.dates().map(date.isoformat) | st.times().map(time.isoformat)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TIMES | OTHERS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


def logical_types() -> Iterator[Any]:
    """Yield every logical type on every type that it may annotate."""
    for name, bases in LOGICAL_BASES.items():
        more = {"precision": 9, "scale": 2} if name == "decimal" else {}
        for base in bases:
            if base == "fixed" or isinstance(base, int):
                size = base if isinstance(base, int) else 8
                yield {"type": "fixed", "name": "F", "size": size, "logicalType": name} | more
            elif base != "record":
                yield {"type": base, "logicalType": name} | more


LOGICAL = list(logical_types())
INNER: list[Any] = [
    {"type": "record", "name": "R", "fields": [{"name": "a", "type": kind}, {"name": "b", "type": ["null", "R"]}]}
    for kind in LOGICAL
]
UNIONS: list[Any] = [
    ["null", kind, "double", {"type": "map", "values": kind}] for kind in LOGICAL if "size" not in kind
]


@cache
def reader_of(document: str) -> EventColumns:
    return EventColumns(ColumnsSchema("s@1", parse(SchemaType.AVRO, document).document), None)


@pytest.mark.parametrize("kind", [*PRIMITIVES, *LOGICAL, *INNER, *UNIONS], ids=str)
@given(value=JSON)
def test_any_json_is_a_row_that_spark_takes(kind: Any, value: Any):
    columns = reader_of(json.dumps(kind))
    row = columns(json.dumps(value).encode())
    assert row.event_error is None or row.event is None
    verify(columns.type, row.event)


def registered(number: int) -> RegisteredSchema:
    return RegisteredSchema(
        number, number, SchemaType.AVRO, "", f'{{"type":"enum","name":"V","symbols":["S{number}"]}}'
    )


def control(live: ColumnsEncoding, *subject: int) -> ControlTable:
    """Return the records of a destination with the encoding `live`, and of a subject with these versions."""
    table = ControlTable()
    to = LakeDestination(encoding=live)
    table.apply(DestinationRecord("p", "lake", 1, "active", to, [], schema=registered(live.version)))
    if subject:
        table.apply(SubjectRecord("t", "orders-value", 1, [registered(number) for number in subject]))
    return table


@pytest.mark.parametrize(("live", "subject"), [(V1, ()), (V2, (1, 2))])
def test_recompute_takes_the_schema_of_its_revision(live: ColumnsEncoding, subject: tuple[int, ...]):
    request = RecomputeRequest("p", "lake", 1, 0, 1)
    typed = typed_columns(control(live, *subject), "t", request, LakeDestination(encoding=V1))
    assert typed is not None
    assert typed.schema == ColumnsSchema("orders-value@1", registered(1).document)
    assert typed_columns(control(live), "t", request, LakeDestination()) is None


def test_recompute_without_the_schema_of_its_revision_is_refused():
    request = RecomputeRequest("p", "lake", 1, 0, 1)
    with pytest.raises(CannotRecomputeError, match="orders-value@1"):
        typed_columns(control(V2, 2), "t", request, LakeDestination(encoding=V1))


def test_table_is_not_written_without_its_schema():
    with pytest.raises(UntypableError, match="orders-value@2"):
        typed_columns_of(LakeDestination(encoding=V2), lambda _: None)
    assert typed_columns_of(LakeDestination(), lambda _: None) is None
