"""Audit records give the same rows in any order, with repeats, and in any batches."""

import random

from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from controlplane.observer.merge import FactId, MergedRecords, clean, merged, tally, united
from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord, FactSet, LagSet, OffsetMark
from dataplane.ledger.sketch import LagSketch

TOPICS = ("penstock.c1.ingest.g1", "penstock.c1.egress.g1")
positions = st.sets(st.integers(0, 200), min_size=1, max_size=12)
marks = st.lists(st.builds(OffsetMark, st.sampled_from(TOPICS), st.integers(0, 2), st.integers(0, 99)), max_size=3)


def fact_set(pipe: str, node: str, bucket: int, units: set[int]) -> FactSet:
    return FactSet(pipe, node, bucket, "sent", "", 0, BitMap64(units).serialize())


def lag_set(pipe: str, bucket: int, lags: list[int]) -> LagSet:
    sketch = LagSketch()
    sketch.add(lags)
    return LagSet(pipe, "normalize", bucket, "in", sketch.encode())


facts = st.lists(
    st.builds(
        fact_set, st.sampled_from(["p1", "p2"]), st.sampled_from(["ingest", "process"]), st.integers(1, 3), positions
    ),
    max_size=4,
)
lags = st.lists(
    st.builds(lag_set, st.just("p1"), st.integers(1, 2), st.lists(st.integers(-50, 10**7), max_size=5)), max_size=3
)


def audit_of(
    facts: list[FactSet], lags: list[LagSet], inputs: list[OffsetMark], outputs: list[OffsetMark]
) -> AuditRecord:
    return AuditRecord(AUDIT_VERSION, "c1", "process-0", "process", 0, inputs, outputs, facts, lags)


audits = st.lists(st.builds(audit_of, facts, lags, marks, marks), max_size=8)


def as_rows(total: MergedRecords) -> object:
    sets = {key: united(None, units) for key, units in total.facts.items()}
    return sets, total.reach, total.passed, total.cells


def sketches(total: MergedRecords) -> dict[object, bytes]:
    return {key: sketch.encode() for key, sketch in total.lags.items()}


@given(audits, st.randoms(use_true_random=False))
def test_order_and_repeats_change_no_facts_and_no_marks(records: list[AuditRecord], rng: random.Random):
    shuffled = records + [rng.choice(records) for _ in records]
    rng.shuffle(shuffled)
    assert as_rows(tally((0, r) for r in records)) == as_rows(tally((0, r) for r in shuffled))


@given(audits, st.randoms(use_true_random=False))
def test_order_changes_no_sketch(records: list[AuditRecord], rng: random.Random):
    shuffled = rng.sample(records, len(records))
    assert sketches(tally((0, r) for r in records)) == sketches(tally((0, r) for r in shuffled))


@given(audits, st.integers(0, 8))
def test_two_batches_stored_in_turn_equal_one_batch(records: list[AuditRecord], cut: int):
    whole = tally((0, r) for r in records)
    first, second = tally((0, r) for r in records[:cut]), tally((0, r) for r in records[cut:])
    stored = {key: united(None, units) for key, units in first.facts.items()}
    stored |= {key: united(stored.get(key), units) for key, units in second.facts.items()}
    assert stored == {key: united(None, units) for key, units in whole.facts.items()}
    kept = {key: merged(None, sketch) for key, sketch in first.lags.items()}
    kept |= {key: merged(kept.get(key), sketch) for key, sketch in second.lags.items()}
    assert kept == sketches(whole)


def test_high_offsets_belong_to_the_buckets_whose_facts_the_record_carries():
    records = [
        audit_of([fact_set("p1", "process", 1, {1})], [], [], [OffsetMark(TOPICS[1], 0, 5)]),
        audit_of([fact_set("p1", "process", 2, {2})], [], [], [OffsetMark(TOPICS[1], 0, 9)]),
    ]
    reach = tally((0, r) for r in records).reach
    assert {key.bucket: offset for key, offset in reach.items()} == {1: 5, 2: 9}


def test_rows_of_different_audit_partitions_stay_separate():
    record = audit_of([fact_set("p1", "ingest", 1, {1})], [], [], [])
    assert {key.partition for key in tally([(0, record), (1, record)]).facts} == {0, 1}


def test_text_that_postgres_would_refuse_is_cleaned_and_truncated():
    wild = FactSet("p1", "ingest", 1, "dead", "bad\x00" + "x" * 99, 0, BitMap64([1]).serialize())
    (key,) = tally([(0, audit_of([wild], [], [], []))]).facts
    assert key == FactId("p1", 1, "ingest", "dead", "bad" + "x" * 57, 0, 0)
    assert clean("a\x00b", 9) == "ab"
