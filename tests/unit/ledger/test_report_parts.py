"""A report too large for one record is split into parts with the same content, in a safe order."""

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from controlplane.observer.merge import tally
from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord, FactSet, LagSet, OffsetMark, decode_audit
from dataplane.ledger.facts import FactBook, FactKey
from dataplane.ledger.fields import (
    DEEPEST,
    LONGEST_NAME,
    MOST_FIELDS,
    MOST_NUMBERS,
    MOST_VALUES,
    FieldCount,
    FieldObservation,
)
from dataplane.ledger.report_parts import encode_parts, split_facts
from dataplane.ledger.sketch import LagSketch
from dataplane.ledger.units import position_of
from dataplane.ledger.usage import PipeUsage, UsageReport
from dataplane.record_limits import CLIENT_MAX_BYTES, REPORT_BYTES

LIMIT = 700  # small, so that most generated reports need several records
INPUTS, OUTPUTS = [OffsetMark("in", 0, 5), OffsetMark("in", 1, 9)], [OffsetMark("out", 1, 2**40)]
sketch = LagSketch()
sketch.add([1, 20, 300])
SKETCH = sketch.encode()
positions = st.sets(st.integers(0, 1 << 60), min_size=1, max_size=20)
facts = st.builds(
    lambda pipe, bucket, found: FactSet(f"pipe_{pipe}", "n", bucket, "sent", "", 0, BitMap64(found).serialize()),
    st.integers(0, 5),
    st.integers(0, 3),
    positions,
)
lags = st.builds(lambda pipe, bucket: LagSet(f"pipe_{pipe}", "n", bucket, "in", SKETCH), st.integers(0, 5), st.just(1))
many_facts, many_lags = st.lists(facts, min_size=20, max_size=30), st.lists(lags, min_size=30, max_size=40)
efforts = st.builds(PipeUsage, st.uuids().map(str), st.integers(0, 9), st.just(1), st.integers(0, 10**6))
usages = st.none() | st.builds(
    UsageReport, st.integers(0, 10**9), st.integers(0, 10**6), st.lists(efforts, max_size=80)
)


def report(facts: list[FactSet], lags: list[LagSet], usage: UsageReport | None) -> AuditRecord:
    about = (AUDIT_VERSION, "c1", "process-0", "process", 1_790_000_000_000_000)
    return AuditRecord(*about, INPUTS, OUTPUTS, facts, lags, usage, [], "run", 7)


@given(many_facts, many_lags, usages)
def test_parts_together_equal_the_whole_report(facts: list[FactSet], lags: list[LagSet], usage: UsageReport | None):
    whole = report(facts, lags, usage)
    parts = [decode_audit(part) for part in encode_parts(whole, LIMIT)]
    assert sum(bool(part.facts) for part in parts) > 1
    assert sum(bool(part.lags) for part in parts) > 1
    expected, found = tally([(0, whole)]), tally([(0, part) for part in parts])
    assert found.facts == expected.facts
    assert {key: one.encode() for key, one in found.lags.items()} == {k: o.encode() for k, o in expected.lags.items()}
    assert (found.reach, found.passed, found.cells) == (expected.reach, expected.passed, expected.cells)
    assert sum(one.cpu_us for one in found.usage.values()) == sum(one.cpu_us for one in expected.usage.values())
    for key, spent in expected.usage.items():
        if key.pipe:
            assert found.usage[key][:2] == spent[:2]
            assert abs(found.usage[key].cpu_us - spent.cpu_us) <= 2, "the difference is only rounding"


def test_usage_of_many_pipes_is_whole_in_the_parts():
    usage = UsageReport(1_000_000, 7, [PipeUsage(f"pipe_{number}", 2, 30, number) for number in range(200)])
    parts = [decode_audit(part) for part in encode_parts(report([], [], usage), LIMIT)]
    found = tally([(0, part) for part in parts]).usage
    assert len(parts) > 3
    assert sum(one.cpu_us for one in found.values()) == 1_000_007
    assert {key.pipe: one[:2] for key, one in found.items() if key.pipe} == {f"pipe_{n}": (2, 30) for n in range(200)}


@given(many_facts, many_lags, usages)
def test_parts_are_within_the_limit_and_numbered_and_only_the_last_has_the_settled_offsets(
    facts: list[FactSet], lags: list[LagSet], usage: UsageReport | None
):
    encoded = encode_parts(report(facts, lags, usage), LIMIT)
    parts = [decode_audit(part) for part in encoded]
    assert max(map(len, encoded)) <= LIMIT
    assert [part.sequence for part in parts] == list(range(7, 7 + len(parts)))
    assert {part.run for part in parts} == {"run"}
    assert [part.inputs for part in parts] == [[]] * (len(parts) - 1) + [INPUTS]
    assert all(part.outputs == OUTPUTS for part in parts if part.facts)


def test_report_within_the_limit_is_one_record():
    whole = report([FactSet("p", "n", 1, "sent", "", 0, BitMap64([1]).serialize())], [], None)
    assert [decode_audit(part) for part in encode_parts(whole)] == [whole]


def test_report_of_ten_thousand_busy_pipes_is_split_within_the_limit():
    book = FactBook()
    for pipe in range(10_000):
        for node in ("process", "transform:main", "transform:second", "transmit:main"):
            book.extend(f"pipe_{pipe:020}", 29_833_333, FactKey(node, "sent"), range(pipe * 3, pipe * 3 + 3))
    wide = LagSketch()
    wide.add([n * 1_000 for n in range(500)])
    lags = [LagSet(f"pipe_{pipe:020}", "normalize", 29_833_333, "in", wide.encode()) for pipe in range(10_000)]
    usage = UsageReport(60_000_000, 5, [PipeUsage(f"pipe_{pipe:020}", 3, 900, 10**9) for pipe in range(10_000)])
    encoded = encode_parts(report(book.sets(), lags, usage))
    assert len(encoded) > 10
    assert max(map(len, encoded)) <= REPORT_BYTES
    named = Counter(one.pipe for part in encoded for one in decode_audit(part).facts)
    assert set(named.values()) == {4}
    assert len(named) == 10_000


@pytest.mark.parametrize(
    "scattered",
    [
        pytest.param([position_of(1, number % 4, number << 16) for number in range(30_000)], id="one in a container"),
        pytest.param([position_of(number % 1_000, 0, number << 16) for number in range(30_000)], id="many high halves"),
        pytest.param(list(range(0, 6_000_000, 3)), id="bitmaps"),
    ],
)
def test_fact_set_larger_than_a_record_is_split(scattered: list[int]):
    fact = FactSet("p", "n", 1, "sent", "", 0, BitMap64(scattered).serialize())
    assert len(fact.positions) > REPORT_BYTES // 4
    parts = list(split_facts(fact, REPORT_BYTES // 4))
    assert len(parts) > 1
    assert all(len(msgspec.msgpack.encode(part)) <= REPORT_BYTES // 4 for part in parts)
    found = BitMap64()
    for part in parts:
        found |= BitMap64.deserialize(part.positions)
    assert found == BitMap64(scattered)


def test_largest_sketch_and_largest_field_sample_fit_into_a_part():
    widest = LagSketch()
    widest.add([sign * round(1.02**power) for power in range(1, 2_200) for sign in (1, -1)])
    assert len(widest.encode()) < REPORT_BYTES // 4
    path = ".".join(["é" * LONGEST_NAME] * DEEPEST)
    kinds = dict.fromkeys(("string", "number", "null", "boolean", "object", "array", "no JSON"), 2**40)
    values = {f"{number:02}" + "é" * 22: 2**40 for number in range(MOST_VALUES)}
    plain, number = FieldCount(path, 2**40, kinds, values), FieldCount(path, 2**40, kinds, values, False, b"x" * 600)
    fields = [number] * MOST_NUMBERS + [plain] * (MOST_FIELDS - MOST_NUMBERS)
    sample = FieldObservation("pipe", "shop", 1, 2**40, fields)
    assert len(msgspec.msgpack.encode(sample)) < REPORT_BYTES // 2


def test_marks_of_very_many_partitions_leave_room_for_facts():
    outputs = [OffsetMark("penstock.cell.egress.g1", number, 2**39) for number in range(16_384)]
    facts = [FactSet(f"pipe_{n}", "n", 1, "sent", "", 0, BitMap64([n]).serialize()) for n in range(10_000)]
    encoded = encode_parts(msgspec.structs.replace(report(facts, [], None), outputs=outputs))
    assert max(map(len, encoded)) < CLIENT_MAX_BYTES
    assert sum(len(decode_audit(part).facts) for part in encoded) == len(facts)
