"""Beginning of the deliveries of events, and what retention has deleted of them."""

import time

from dataplane.replay.ranges import OffsetRange
from dataplane.shadow.offsets import MARGIN_MS, deleted_part, incomplete_part, sent_range, stored_ms
from tests.support.replaying import EGRESS, INGEST, NOW_US, PARTITIONS, TOPICS
from tests.support.shadowing import ShadowWorld

NOW_MS = NOW_US // 1_000
SECOND_US = 1_000_000


def filled(now_us: int = NOW_US) -> ShadowWorld:
    """Return a world with 30 events and deliveries in each partition, a second apart."""
    world = ShadowWorld()
    for second in range(30):
        for partition in range(PARTITIONS):
            at_us = now_us + second * SECOND_US
            world.process(world.ingest(second, partition=partition, ingest_time_us=at_us))
    return world


def test_deliveries_begin_a_margin_before_the_first_event():
    found = sent_range(filled().reader(), TOPICS["egress"], NOW_MS + 20_000)
    assert found.firsts == {(EGRESS, number): 10 for number in range(PARTITIONS)}
    assert (found.complete_ms, MARGIN_MS) == (0, 10_000)


def test_partitions_without_later_records_are_left_out():
    found = sent_range(filled().reader(), TOPICS["egress"], NOW_MS + 99_000)
    assert found == ({}, 0)


def test_deliveries_that_retention_has_deleted_are_noted():
    world = filled()
    world.lows[EGRESS, 2] = 15
    found = sent_range(world.reader(), TOPICS["egress"], NOW_MS + 5_000)
    assert found.complete_ms == NOW_MS + 15_001
    assert sent_range(world.reader(), TOPICS["egress"], NOW_MS + 26_000).complete_ms == 0, "the range is retained"
    left = [OffsetRange((INGEST, number), 5, 30) for number in range(PARTITIONS)]
    skipped = incomplete_part(world.reader(), TOPICS["ingest"], left, found.complete_ms)
    assert skipped == [OffsetRange((INGEST, number), 5, 26) for number in range(PARTITIONS)]


def test_partition_of_which_nothing_is_retained_hides_only_what_may_be_deleted():
    world = filled()
    world.lows[EGRESS, 2] = 30
    assert sent_range(world.reader(), TOPICS["egress"], NOW_MS + 5_000).complete_ms > NOW_MS + 30_000
    now_us = time.time_ns() // 1_000
    fresh = filled(now_us)
    for low in (15, 30):
        fresh.lows[EGRESS, 2] = low
        found = sent_range(fresh.reader(), TOPICS["egress"], now_us // 1_000)
        assert found.complete_ms == 0, "no retention is so short"


def test_deleted_events_are_cut_off():
    world = filled()
    world.delete_below(1, 12)
    world.delete_below(3, 30)
    left = [OffsetRange((INGEST, number), 5, 20) for number in range(PARTITIONS)]
    found = deleted_part(world.reader(), left)
    assert found.ranges == [OffsetRange((INGEST, 1), 5, 12), OffsetRange((INGEST, 3), 5, 20)]
    assert found.until_ms == NOW_MS + 12_000
    assert stored_ms(world.reader(), left[:1]) == [NOW_MS + 5_000]
