"""Each release understands the records of the releases next to it.

v<N>.json holds records as the releases of wire version N write them: their bytes and their meaning. A file is
never rewritten; a new version gets its own file. During a rollout the applications of both releases read each
other's records, and after a rollback the old release reads what the new one left.
"""

import base64
import json
from collections.abc import Callable
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
from dataplane.plan.taps import decode_clock, decode_tap
from dataplane.process.dedup import ASK_HEADER, read_question
from dataplane.tables.blocks import decode_block
from dataplane.tables.lookups import decode_row, decode_table
from dataplane.tables.records import Record, decode_record
from dataplane.tables.redrives import decode_early_release, decode_progress
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
    "table": decode_table,
    "row": decode_row,
    "tap": decode_tap,
    "clock": decode_clock,
    "question": lambda value: read_question([(META_HEADER, b""), (ASK_HEADER, value)]),
    "sketch": quantiles,
    "breakdown": breakdown,
    "stopwatch": decode_stamp,
}


def meaning_of(name: str, value: bytes) -> Any:
    """Return the meaning of a record as plain JSON."""
    return json.loads(msgspec.json.encode(READERS[name](value)))


def keeps_meaning(then: Any, now: Any) -> bool:
    """Return True if `now` says all that `then` says: fields may be added, none removed or changed."""
    if isinstance(then, dict):
        return isinstance(now, dict) and all(key in now and keeps_meaning(then[key], now[key]) for key in then)
    if isinstance(then, list):
        return isinstance(now, list) and len(then) <= len(now) and all(map(keeps_meaning, then, now))
    return bool(then == now)


def grown(name: str, value: bytes) -> bytes:
    """Return the record as a later release may extend it: one more field, or one more element at its end."""
    if name.partition("/")[0] in JSON_KINDS:
        return msgspec.json.encode(msgspec.json.decode(value) | {"of_the_next": {"deep": [1]}})
    elements, now = msgspec.msgpack.decode(value), READERS[name](value)
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


def test_every_kind_of_record_is_frozen():
    assert set(json.loads((HERE / f"v{WIRE_VERSION}.json").read_text())) == set(READERS)


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
