"""Cell records between releases: kinds of lanes and topics that one of them does not know."""

from typing import Literal

import msgspec
from msgspec import Struct

from dataplane.names import LANE_KINDS, PURPOSES
from dataplane.tables.records import CellRecord, TopicRecord, decode_record, encode_record
from mgmt.cells.expected_lanes import FIRST_KINDS, expected_lanes

FIRST_PURPOSES = (
    "ingest", "egress", "retry-in", "delay-10s", "delay-1m", "delay-5m", "delay-30m", "delay-2h", "delay-10h",
    "retry-out", "dead", "held", "attempts", "signals", "blocked", "slow", "tail", "dedup", "taps", "panes", "lake",
)  # fmt: skip


class FirstCellRecord(Struct, tag="cell", tag_field="kind", frozen=True):
    """Cell record as the first release of this wire version declares it: refuses any other kind."""

    cell: str
    version: int
    epoch: int
    lanes: dict[Literal[FIRST_KINDS], int]  # type: ignore[valid-type]
    topics: dict[Literal[FIRST_PURPOSES], TopicRecord]  # type: ignore[valid-type]


def record() -> CellRecord:
    topics = {purpose: TopicRecord(f"penstock.c1.{purpose}", 1, 4, "") for purpose in PURPOSES}
    return CellRecord("c1", 9, 2, dict.fromkeys(LANE_KINDS, 1), topics)


def test_record_survives_the_wire():
    assert decode_record(encode_record(record())) == record()


def test_first_release_reads_a_record_with_all_kinds():
    first = msgspec.json.decode(encode_record(record()), type=FirstCellRecord)
    assert (first.version, first.epoch) == (9, 2)
    assert set(first.lanes) == set(FIRST_KINDS)
    assert set(first.topics) == set(FIRST_PURPOSES)


def test_kinds_of_a_later_release_are_ignored():
    raw = msgspec.json.decode(encode_record(record()))
    raw["later_lanes"]["process-tomorrow"] = 1
    raw["later_topics"]["tomorrow"] = raw["topics"]["ingest"]
    assert decode_record(msgspec.json.encode(raw)) == record()


def test_record_of_the_first_release_is_read():
    raw = msgspec.json.decode(encode_record(record()))
    del raw["later_lanes"], raw["later_topics"]
    cell = decode_record(msgspec.json.encode(raw))
    assert isinstance(cell, CellRecord)
    assert set(cell.lanes) == set(FIRST_KINDS)


def test_lanes_are_expected_only_of_a_release_that_has_them():
    wanted = {"process": 2, "process-slow": 1}
    assert expected_lanes(wanted, None) == ["process-0", "process-1", "process-slow-0"]
    assert expected_lanes(wanted, {}) == ["process-0", "process-1"], "a release that does not report its lane kinds"
    assert expected_lanes(wanted, {"lane_kinds": ["process"]}) == ["process-0", "process-1"]
    assert expected_lanes(wanted, {"lane_kinds": list(LANE_KINDS)}) == ["process-0", "process-1", "process-slow-0"]
