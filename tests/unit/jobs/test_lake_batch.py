"""What a batch of the lake's topic holds: one row a message, however often it came, and where to look for it."""

from datetime import date

import pytest

from dataplane.jobs.lake_batch import Hour, ends_of, file_lot, hour_of, lots_of, note_lags
from dataplane.jobs.lake_writer import NoSuchLakeError, table_path
from dataplane.ledger.breakdown import Breakdown, Slice
from dataplane.ledger.facts import Fact, FactBook, FactKey, count_positions
from dataplane.ledger.meta import Meta, encode_meta
from dataplane.ledger.sketch import Sketch
from dataplane.ledger.stopwatch import stamp
from dataplane.ledger.units import position_of
from dataplane.names import WIRE_VERSION
from dataplane.runtime.lags import LagBook
from dataplane.spec import LakeDestination
from dataplane.spec.kept import parse_lakes

NOON_US = 1_795_262_400_000_000  # 2026-11-21 12:00 UTC


def meta(offset: int, *, partition: int = 0, child: int = 0, destination: str = "lake") -> Meta:
    made = Meta(WIRE_VERSION, f"id-{offset}", "p", 1, "shop", NOON_US, NOON_US, NOON_US // 60_000_000)
    made.position, made.child, made.destination = position_of(1, partition, offset), child, destination
    made.stopwatch = stamp(Slice.LAKE, NOON_US + 3, [1, 2])
    return made


def record(at: int, message: Meta) -> tuple[int, int, bytes]:
    return 0, at, encode_meta(message)


def test_messages_are_told_apart_by_destination_and_what_is_none_of_ours_is_named():
    lots, strange = lots_of([record(0, meta(1)), record(1, meta(1, destination="old")), (1, 7, b"junk")])
    assert [(lot.pipe, lot.destination, len(lot.metas)) for lot in lots] == [("p", "lake", 1), ("p", "old", 1)]
    assert strange == [(1, 7)]


def test_a_message_that_came_twice_or_is_known_is_one_row():
    (lot,), _ = lots_of([record(0, meta(1)), record(1, meta(1)), record(2, meta(2)), record(3, meta(1, child=1))])
    assert list(lot.rows()) == [(0, 0), (0, 2), (0, 3)]
    assert list(lot.rows({(position_of(1, 0, 1), 0)})) == [(0, 2), (0, 3)]


def test_it_is_looked_for_in_few_and_narrow_places():
    (lot,), _ = lots_of(record(at, meta(offset, partition=at % 2)) for at, offset in enumerate((10, 1_000, 12, 1_007)))
    assert lot.ranges() == [
        (position_of(1, 0, 10), position_of(1, 0, 12)),
        (position_of(1, 1, 1_000), position_of(1, 1, 1_007)),
    ]
    assert lot.hours() == {Hour(date(2026, 11, 21), 12)}


@pytest.mark.parametrize(("second", "hour"), [(0, 12), (3_599, 12), (3_600, 13)])
def test_the_hour_is_that_of_ingest_in_utc(second: int, hour: int):
    assert hour_of(NOON_US + second * 1_000_000) == Hour(date(2026, 11, 21), hour)


def test_the_ends_are_behind_the_last_record_of_each_partition():
    assert ends_of([(0, 4, b""), (1, 9, b""), (0, 3, b"")]) == {0: 5, 1: 10}


def test_facts_and_lags_are_filed_for_every_unit():
    facts, lags = FactBook(), LagBook()
    units = [meta(1), meta(2), meta(2, child=1)]
    file_lot(units, Fact.DELIVERED, facts)
    note_lags(units, lags, NOON_US + 5)
    filed = {FactKey(one.node, one.fact, one.detail, one.child): one.positions for one in facts.take()}
    assert {key: count_positions(positions) for key, positions in filed.items()} == {
        FactKey("transmit:lake", Fact.DELIVERED): 2,
        FactKey("transmit:lake", Fact.DELIVERED, "", 1): 1,
    }
    taken = lags.take()
    found = {(one.node, one.way): Sketch.decode(one.sketch) for one in taken}
    assert {key: (sketch.count, sketch.max_us) for key, sketch in found.items()} == {
        ("transmit:lake", "in"): (3, 3),
        ("transmit:lake", "out"): (3, 5),
        ("transmit:lake", "own"): (3, 2),
    }
    spent = {portion.slice: portion.sum_us for portion in Breakdown.decode(taken[1].breakdown).portions(0.5)}
    assert spent == {Slice.INGEST: 3, Slice.PROCESS_QUEUE: 6, Slice.LAKE: 6}


def test_of_a_message_that_an_earlier_release_put_there_no_timing_is_known():
    unstamped, lags = meta(1), LagBook()
    unstamped.stopwatch = b""
    note_lags([unstamped], lags, NOON_US + 5)
    assert lags.take() == []


def test_a_table_lies_below_a_store_of_the_platform_in_the_tenants_own_place():
    lakes = ("file:///srv/lake", "s3a://bucket/lake/")
    assert table_path(lakes, LakeDestination(), "ten", "p", "d") == "file:///srv/lake/ten/p/d"
    assert table_path(lakes, LakeDestination("s3a://bucket/lake/"), "ten", "p", "d") == "s3a://bucket/lake/ten/p/d"
    with pytest.raises(NoSuchLakeError):
        table_path(lakes, LakeDestination("file:///etc"), "ten", "p", "d")


def test_stores_are_named_by_urls():
    assert parse_lakes("", "/var/penstock") == ("file:///var/penstock/lake",)
    assert parse_lakes("s3a://a/b, file:///c", "") == ("s3a://a/b", "file:///c")
    with pytest.raises(ValueError, match="PENSTOCK_LAKES"):
        parse_lakes("/srv/lake", "")
