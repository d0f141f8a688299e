"""Batches of the lake topic: one row for each message, however often it arrives, and where to look it up."""

from datetime import date

import pytest
from pyroaring import BitMap64

from dataplane.jobs.lake_batch import LakeHour, ends_of, file_facts, groups_of, hour_of, note_lags
from dataplane.jobs.lake_writer import UnknownLakeError, table_path
from dataplane.ledger.breakdown import Breakdown, Slice
from dataplane.ledger.facts import Fact, FactBook, FactKey
from dataplane.ledger.meta import MessageMeta, encode_meta
from dataplane.ledger.sketch import LagSketch
from dataplane.ledger.stopwatch import stamp
from dataplane.ledger.units import position_of
from dataplane.names import WIRE_VERSION
from dataplane.runtime.telemetry.lags import LagBook
from dataplane.spec import LakeDestination
from dataplane.spec.storage import parse_lakes

NOON_US = 1_795_262_400_000_000  # 2026-11-21 12:00 UTC


def meta(offset: int, *, partition: int = 0, child: int = 0, destination: str = "lake") -> MessageMeta:
    made = MessageMeta(WIRE_VERSION, f"id-{offset}", "p", 1, "shop", NOON_US, NOON_US, NOON_US // 60_000_000)
    made.position, made.child, made.destination = position_of(1, partition, offset), child, destination
    made.stopwatch = stamp(Slice.LAKE, NOON_US + 3, [1, 2])
    return made


def record(at: int, message: MessageMeta) -> tuple[int, int, bytes]:
    return 0, at, encode_meta(message)


def test_batch_is_grouped_by_destination_and_invalid_records_are_listed():
    groups, strange = groups_of([record(0, meta(1)), record(1, meta(1, destination="old")), (1, 7, b"junk")])
    assert [(group.pipe, group.destination, len(group.metas)) for group in groups] == [
        ("p", "lake", 1),
        ("p", "old", 1),
    ]
    assert strange == [(1, 7)]


def test_repeated_or_known_message_is_one_row():
    (group,), _ = groups_of([record(0, meta(1)), record(1, meta(1)), record(2, meta(2)), record(3, meta(1, child=1))])
    assert list(group.rows()) == [(0, 0), (0, 2), (0, 3)]
    assert list(group.rows({(position_of(1, 0, 1), 0)})) == [(0, 2), (0, 3)]


def test_look_up_of_existing_rows_uses_few_and_narrow_ranges():
    (group,), _ = groups_of(
        record(at, meta(offset, partition=at % 2)) for at, offset in enumerate((10, 1_000, 12, 1_007))
    )
    assert group.ranges() == [
        (position_of(1, 0, 10), position_of(1, 0, 12)),
        (position_of(1, 1, 1_000), position_of(1, 1, 1_007)),
    ]
    assert group.hours() == {LakeHour(date(2026, 11, 21), 12)}


@pytest.mark.parametrize(("second", "hour"), [(0, 12), (3_599, 12), (3_600, 13)])
def test_hour_is_the_ingest_hour_in_utc(second: int, hour: int):
    assert hour_of(NOON_US + second * 1_000_000) == LakeHour(date(2026, 11, 21), hour)


def test_end_offsets_are_after_the_last_record_of_each_partition():
    assert ends_of([(0, 4, b""), (1, 9, b""), (0, 3, b"")]) == {0: 5, 1: 10}


def test_facts_and_lags_are_recorded_for_every_unit():
    facts, lags = FactBook(), LagBook()
    units = [meta(1), meta(2), meta(2, child=1)]
    file_facts(units, Fact.DELIVERED, facts)
    note_lags(units, lags, NOON_US + 5)
    filed = {FactKey(one.node, one.fact, one.detail, one.child): one.positions for one in facts.take()}
    assert {key: len(BitMap64.deserialize(positions)) for key, positions in filed.items()} == {
        FactKey("transmit:lake", Fact.DELIVERED): 2,
        FactKey("transmit:lake", Fact.DELIVERED, "", 1): 1,
    }
    taken = lags.take()
    found = {(one.node, one.way): LagSketch.decode(one.sketch) for one in taken}
    assert {key: (sketch.count, sketch.max_us) for key, sketch in found.items()} == {
        ("transmit:lake", "in"): (3, 3),
        ("transmit:lake", "out"): (3, 5),
        ("transmit:lake", "own"): (3, 2),
    }
    spent = {portion.slice: portion.sum_us for portion in Breakdown.decode(taken[1].breakdown).portions(0.5)}
    assert spent == {Slice.INGEST: 3, Slice.PROCESS_QUEUE: 6, Slice.LAKE: 6}


def test_message_of_an_earlier_release_without_stopwatch_has_no_timing():
    unstamped, lags = meta(1), LagBook()
    unstamped.stopwatch = b""
    note_lags([unstamped], lags, NOON_US + 5)
    assert lags.take() == []


def test_table_path_is_below_a_store_of_the_platform_in_the_tenants_own_folder():
    lakes = ("file:///srv/lake", "s3a://bucket/lake/")
    assert table_path(lakes, LakeDestination(), "ten", "p", "d") == "file:///srv/lake/ten/p/d"
    assert table_path(lakes, LakeDestination("s3a://bucket/lake/"), "ten", "p", "d") == "s3a://bucket/lake/ten/p/d"
    with pytest.raises(UnknownLakeError):
        table_path(lakes, LakeDestination("file:///etc"), "ten", "p", "d")


def test_lake_stores_are_named_by_urls():
    assert parse_lakes("", "/var/penstock") == ("file:///var/penstock/lake",)
    assert parse_lakes("s3a://a/b, file:///c", "") == ("s3a://a/b", "file:///c")
    with pytest.raises(ValueError, match="PENSTOCK_LAKES"):
        parse_lakes("/srv/lake", "")
