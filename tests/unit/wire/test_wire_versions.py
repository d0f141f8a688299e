"""Each release understands the records of the releases next to it.

v<N>.json holds records as the releases of wire version N write them: their bytes and their meaning. A record is
never rewritten: one with fields that were added later follows as `kind (2)`, and a new version gets its own file.
During a rollout the applications of both releases read each other's records, and after a rollback the old release
reads what the new one left.
"""

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dataplane.ledger.audit import decode_attempts, decode_audit
from dataplane.ledger.breakdown import Breakdown
from dataplane.ledger.heartbeat import decode_heartbeat
from dataplane.ledger.meta import META_HEADER, decode_meta
from dataplane.ledger.sketch import LagSketch
from dataplane.ledger.stopwatch import decode_stamp
from dataplane.names import WIRE_VERSION
from dataplane.plan.sequence import decode_sequence_state, decode_sequence_tap
from dataplane.plan.taps import decode_clock, decode_tap
from dataplane.process.dedup import ASK_HEADER, read_question
from dataplane.tables.blocks import decode_block
from dataplane.tables.lookups import decode_row, decode_table
from dataplane.tables.records import Record, decode_record
from dataplane.tables.redrives import decode_early_release, decode_progress
from dataplane.tables.replays import decode_replay_progress
from dataplane.tables.shadows import decode_shadow_progress
from dataplane.tables.signals import decode_signal

HERE = Path(__file__).parent
QUANTILES = (0.0, 0.5, 0.95, 1.0)
JSON_KINDS = ("control", "heartbeat", "table", "row")


def quantiles(value: bytes) -> list[int]:
    sketch = LagSketch.decode(value)
    return [sketch.count, sketch.min_us, sketch.max_us, *map(sketch.quantile, QUANTILES)]


def breakdown(value: bytes) -> list[Any]:
    found = Breakdown.decode(value)
    portions = [[int(one.slice), one.took_us, one.sum_us, one.own.max_us] for one in found.portions(0.95)]
    return [found.count, found.source.min_us, found.source.max_us, found.sum_us, found.whole.max_us, portions]


CONTROL_RECORDS = [f"control/{kind.__struct_config__.tag}" for kind in Record.__args__]
READERS: dict[str, Callable[[bytes], Any]] = {
    **dict.fromkeys(CONTROL_RECORDS, decode_record),
    "meta": decode_meta,
    "audit": decode_audit,
    "attempts": decode_attempts,
    "heartbeat": decode_heartbeat,
    "signal": decode_signal,
    "block": decode_block,
    "progress": decode_progress,
    "ahead": decode_early_release,
    "replay": decode_replay_progress,
    "shadow": decode_shadow_progress,
    "table": decode_table,
    "row": decode_row,
    "tap": decode_tap,
    "clock": decode_clock,
    "number": decode_sequence_tap,
    "numbers": decode_sequence_state,
    "question": lambda value: read_question([(META_HEADER, b""), (ASK_HEADER, value)]),
    "sketch": quantiles,
    "breakdown": breakdown,
    "stopwatch": decode_stamp,
}


def kind_of(name: str) -> str:
    return name.partition(" ")[0]


def meaning_of(name: str, value: bytes) -> Any:
    """Return the meaning of a record as plain JSON."""
    return json.loads(msgspec.json.encode(READERS[kind_of(name)](value)))


def keeps_meaning(then: Any, now: Any) -> bool:
    """Return True if `now` says all that `then` says: fields may be added, none removed or changed."""
    if isinstance(then, dict):
        return isinstance(now, dict) and all(key in now and keeps_meaning(then[key], now[key]) for key in then)
    if isinstance(then, list):
        return isinstance(now, list) and len(then) <= len(now) and all(map(keeps_meaning, then, now))
    return bool(then == now)


def grown(name: str, value: bytes) -> bytes:
    """Return the record as a later release may extend it: one more field, or one more element at its end."""
    if kind_of(name).partition("/")[0] in JSON_KINDS:
        return msgspec.json.encode(msgspec.json.decode(value) | {"of_the_next": {"deep": [1]}})
    elements, now = msgspec.msgpack.decode(value), READERS[kind_of(name)](value)
    if isinstance(now, msgspec.Struct):  # elements added since it was frozen precede those of the next release
        elements += [getattr(now, field) for field in now.__struct_fields__[len(elements) :]]
    return msgspec.msgpack.encode([*elements, {"of the next": [1]}])


def frozen() -> list[Any]:
    """Return every record of this wire version and of the one before."""
    versions = [version for version in (WIRE_VERSION - 1, WIRE_VERSION) if version]
    files = {version: json.loads((HERE / f"v{version}.json").read_text()) for version in versions}
    return [
        pytest.param(name, base64.b64decode(record["bytes"]), record["says"], id=f"v{version} {name}")
        for version, records in files.items()
        for name, record in records.items()
    ]


@pytest.mark.parametrize(("name", "value", "says"), frozen())
def test_record_of_this_version_or_the_one_before_keeps_its_meaning(name: str, value: bytes, says: Any):
    assert keeps_meaning(says, meaning_of(name, value)), meaning_of(name, value)


@pytest.mark.parametrize(("name", "value", "says"), frozen())
def test_record_that_a_later_release_extended_is_understood(name: str, value: bytes, says: Any):
    assert keeps_meaning(says, meaning_of(name, grown(name, value)))


def current() -> dict[str, bytes]:
    """Return the frozen records of this wire version by name."""
    records = json.loads((HERE / f"v{WIRE_VERSION}.json").read_text())
    return {name: base64.b64decode(record["bytes"]) for name, record in records.items()}


def test_every_kind_of_record_is_frozen():
    assert set(map(kind_of, current())) == set(READERS)


def parts_of(value: Any) -> Iterator[msgspec.Struct]:
    """Yield all structures of a record, except for those of a spec, which is stored and has its own versions."""
    if isinstance(value, msgspec.Struct) and not type(value).__module__.startswith("dataplane.spec"):
        yield value
        value = [getattr(value, field) for field in value.__struct_fields__]
    elif isinstance(value, dict):
        value = value.values()
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for part in value:
            yield from parts_of(part)


def test_every_field_of_a_record_is_frozen_with_another_value_than_its_default():
    missing: dict[str, set[str]] = {}
    for name, value in current().items():
        for part in parts_of(READERS[kind_of(name)](value)):
            usual = {
                field.name for field in msgspec.structs.fields(part) if not field.required and is_default(part, field)
            }
            missing[type(part).__name__] = missing.get(type(part).__name__, usual) & usual
    del missing["CellRecord"]  # both of its fields for later kinds are merged into the others when it is read
    assert {name: fields for name, fields in missing.items() if fields} == {"PlanRecord": {"version"}}


def test_fields_of_records_without_names_keep_their_places():
    """Such records are arrays: fields may be added at the end, and a field in another place is read as another one."""
    frozen = json.loads((HERE / f"v{WIRE_VERSION}_places.json").read_text())
    parts = [part for name, value in current().items() for part in parts_of(READERS[kind_of(name)](value))]
    now = {type(part).__name__: part.__struct_fields__ for part in parts if part.__struct_config__.array_like}
    assert {name: list(now[name][: len(fields)]) for name, fields in frozen.items()} == frozen
    assert set(now) == set(frozen)


def is_default(part: msgspec.Struct, field: msgspec.structs.FieldInfo) -> bool:
    made = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    return bool(getattr(part, field.name) == made)


@pytest.mark.parametrize(
    ("then", "now"),
    [
        pytest.param({"a": 1}, {}, id="a field has gone"),
        pytest.param({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, id="a value deep inside is another"),
        pytest.param([1, 2], [1], id="the end is missing"),
        pytest.param([1, 2], [0, 1, 2], id="a field was put in between"),
    ],
)
def test_changed_meaning_is_detected(then: Any, now: Any):
    assert not keeps_meaning(then, now)
