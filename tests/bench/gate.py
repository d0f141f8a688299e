"""Cost of checking events at ingest: our own time per event with a schema, against none, in alternating passes.

As `own`, without HTTP and Kafka: batches of 100 of the common event, and single events where a framing has no batches.
"""

import asyncio
import io
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import fastavro
import uvloop

from dataplane.runtime.garbage import collect_rarely
from dataplane.schemas.types import SchemaType
from dataplane.tables.records import EventTypesRecord, Record
from loadgen.measured import EVENT
from tests.bench.memory_ingest import BATCH, REQUESTS, MemoryIngest
from tests.bench.report import Line
from tests.bench.threads import mock_cluster
from tests.support.event_types import confluent, registered, subject

PASSES: Final = 200
SCHEMA_ID: Final = 7
_LINE: Final = {
    "type": "record",
    "name": "Line",
    "fields": [{"name": "sku", "type": "string"}, {"name": "n", "type": "int"}],
}
_ORDER: Final = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "lines", "type": {"type": "array", "items": _LINE}},
    ],
}
_CUSTOMER: Final = {
    "type": "record",
    "name": "Customer",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "email", "type": ["null", "string"], "default": None},
        {"name": "since", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}
AVRO: Final = {
    "type": "record",
    "name": "Placed",
    "fields": [
        {"name": "order", "type": _ORDER},
        {"name": "customer", "type": _CUSTOMER},
        {"name": "note", "type": "string"},
    ],
}
_LINES_JSON: Final = {
    "type": "array",
    "items": {"type": "object", "properties": {"sku": {"type": "string"}, "n": {"type": "integer"}}},
}
JSON_SCHEMA: Final = {
    "type": "object",
    "required": ["order", "customer", "note"],
    "properties": {
        "order": {
            "type": "object",
            "required": ["id", "total", "lines"],
            "properties": {"id": {"type": "integer"}, "total": {"type": "string"}, "lines": _LINES_JSON},
        },
        "customer": {
            "type": "object",
            "required": ["name", "since"],
            "properties": {"name": {"type": "string"}, "email": {"type": "string"}, "since": {"type": "string"}},
        },
        "note": {"type": "string"},
    },
}


class GateCase(NamedTuple):
    """One way to send events: the schema of their source, and a request. `events`: in the request."""

    name: str
    schema: Any
    kind: SchemaType
    media_type: str
    body: bytes
    events: int
    need: float = 0.0  # of the rate without a schema


def cases() -> list[GateCase]:
    """Return the cases; the first of each size has no schema."""
    event = json.loads(EVENT)
    batch = b"[" + b",".join([EVENT] * BATCH) + b"]"
    framed = confluent(SCHEMA_ID, AVRO, event)
    json_kind, avro_kind = SchemaType.JSON, SchemaType.AVRO
    return [
        GateCase("no schema, batches of 100", None, json_kind, "application/json", batch, BATCH),
        GateCase("JSON by JSON Schema, batches of 100", JSON_SCHEMA, json_kind, "application/json", batch, BATCH, 0.6),
        GateCase("JSON by Avro, batches of 100", AVRO, avro_kind, "application/json", batch, BATCH, 0.6),
        GateCase("Avro, containers of 100", AVRO, avro_kind, "application/avro", _container(event), BATCH, 0.9),
        GateCase("no schema, single events", None, json_kind, "application/json", EVENT, 1),
        GateCase("Avro in Confluent's framing, single events", AVRO, avro_kind, "application/avro", framed, 1, 0.9),
    ]


def _container(event: dict[str, Any]) -> bytes:
    payload = confluent(SCHEMA_ID, AVRO, event)[5:]
    datum = fastavro.schemaless_reader(io.BytesIO(payload), AVRO, None)
    written = io.BytesIO()
    fastavro.writer(written, AVRO, [datum] * BATCH)
    return written.getvalue()


def _records(case: GateCase) -> tuple[Record, ...]:
    """Return the control records of the case's event type."""
    if case.schema is None:
        return ()
    placed = subject("placed", registered(SCHEMA_ID, 1, case.schema, case.kind))
    return placed, EventTypesRecord("p", "shop", 1, "", {"": "placed"})


@contextmanager
def _runs(cases: list[GateCase]) -> Iterator[list[MemoryIngest]]:
    with mock_cluster([]) as (cluster, _), tempfile.TemporaryDirectory(prefix="penstock-bench-") as var:
        runs = [
            MemoryIngest(
                Path(var) / str(number), cluster.kafka, case.media_type, case.body, case.events, _records(case)
            )
            for number, case in enumerate(cases)
        ]
        yield runs
        for run in runs:
            run.close()


def _pass_us(runner: asyncio.Runner, run: MemoryIngest, events: int) -> float:
    begun_s = time.thread_time()
    runner.run(run.requests())
    spent_s = time.thread_time() - begun_s
    run.end_pass()
    return spent_s / events * 1e6


def bench_gate(_at: object) -> list[Line]:
    """Measure all cases in turn, pass by pass, so that a noisy moment affects each."""
    collect_rarely()
    found = cases()
    us: dict[str, list[float]] = {case.name: [] for case in found}
    measure: Callable[[], asyncio.Runner] = partial(asyncio.Runner, loop_factory=uvloop.new_event_loop)
    with _runs(found) as runs, measure() as runner:
        for _ in range(PASSES):
            for case, run in zip(found, runs, strict=True):
                us[case.name].append(_pass_us(runner, run, REQUESTS * case.events))
    return [_line(case, us, found) for case in found]


def _line(case: GateCase, us: dict[str, list[float]], found: list[GateCase]) -> Line:
    bare = next(one.name for one in found if one.schema is None and one.events == case.events)
    tenth = {name: sorted(times)[len(times) // 10] for name, times in us.items()}
    rate, base = 1e6 / tenth[case.name], 1e6 / tenth[bare]
    line = Line(f"gate: {case.name}, {tenth[case.name]:.1f} us", "events/s", [rate], [base])
    if case.need:
        line.need = f"{case.need:.0%} of no schema".replace("%", " %")
        line.met = rate / base >= case.need
    return line
