"""Offsets of a replay's range of times, and what retention has deleted of it."""

import pytest
from confluent_kafka import KafkaException

from dataplane.replay.offsets import MARGIN_US, resolve
from tests.support.replaying import INGEST, NOW_US, PARTITIONS, TOPICS, ReplayWorld

MINUTE_US = 60_000_000
TOPIC = TOPICS["ingest"]


def filled(world: ReplayWorld, minutes: int = 60, partitions: int = PARTITIONS) -> None:
    """Write one event a minute to each partition, from NOW_US on."""
    for minute in range(minutes):
        for partition in range(partitions):
            world.ingest(minute, partition=partition, ingest_time_us=NOW_US + minute * MINUTE_US)


def test_range_has_a_margin_for_clocks_that_differ():
    world = ReplayWorld()
    filled(world)
    found = resolve(world.reader(), TOPIC, NOW_US + 10 * MINUTE_US, NOW_US + 20 * MINUTE_US)
    assert MARGIN_US == MINUTE_US
    assert {(one.first, one.end) for one in found.ranges} == {(9, 21)}
    assert {one.place for one in found.ranges} == {(INGEST, number) for number in range(PARTITIONS)}
    assert found.retained_since_us == 0


def test_range_is_within_the_watermarks():
    world = ReplayWorld()
    filled(world)
    found = resolve(world.reader(), TOPIC, NOW_US - 99 * MINUTE_US, NOW_US + 99 * MINUTE_US)
    assert {(one.first, one.end) for one in found.ranges} == {(0, 60)}
    later = resolve(world.reader(), TOPIC, NOW_US + 99 * MINUTE_US, NOW_US + 199 * MINUTE_US)
    assert {(one.first, one.end) for one in later.ranges} == {(60, 60)}


def test_deleted_events_of_the_range_are_reported_and_the_rest_is_read():
    world = ReplayWorld()
    filled(world)
    world.delete_below(1, 15)
    found = resolve(world.reader(), TOPIC, NOW_US + 10 * MINUTE_US, NOW_US + 20 * MINUTE_US)
    assert [(one.first, one.end) for one in found.ranges] == [(9, 21), (15, 21), (9, 21), (9, 21)]
    assert found.retained_since_us == NOW_US + 15 * MINUTE_US


def test_deleted_events_before_the_range_are_not_reported():
    world = ReplayWorld()
    filled(world)
    world.delete_below(1, 9)
    found = resolve(world.reader(), TOPIC, NOW_US + 10 * MINUTE_US, NOW_US + 20 * MINUTE_US)
    assert found.retained_since_us == 0


def test_range_of_which_nothing_is_retained_is_reported_as_a_whole():
    world = ReplayWorld()
    filled(world)
    for partition in range(PARTITIONS):
        world.delete_below(partition, 60)
    found = resolve(world.reader(), TOPIC, NOW_US, NOW_US + 20 * MINUTE_US)
    assert {(one.first, one.end) for one in found.ranges} == {(60, 60)}
    assert found.retained_since_us == NOW_US + 20 * MINUTE_US


def test_empty_topic_is_an_empty_range():
    found = resolve(ReplayWorld().reader(), TOPIC, NOW_US, NOW_US + 1)
    assert {(one.first, one.end) for one in found.ranges} == {(0, 0)}
    assert found.retained_since_us == 0


def test_broker_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch):
    world = ReplayWorld()
    reader = world.reader()
    monkeypatch.setattr(reader, "get_watermark_offsets", lambda *_args, **_named: None)
    with pytest.raises(KafkaException):
        resolve(reader, TOPIC, NOW_US, NOW_US + 1)
