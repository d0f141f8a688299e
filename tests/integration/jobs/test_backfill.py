"""A topic destination that starts with earlier events, on real Kafka and Spark, next to live traffic and a ramp."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pytest
from confluent_kafka import Message, TopicPartition

from dataplane.ledger.bins import Bin
from dataplane.names import output_topic
from dataplane.replay.progress_log import read_progress
from dataplane.retrier.redriver import place_reader
from dataplane.spec import parse_pipe_spec
from dataplane.tables.records import PipeRecord, PlanRecord
from dataplane.tables.replays import ReplayProgress
from mgmt.replays.unsent import unsent_revisions
from tests.support.cluster import TENANT
from tests.support.data_plane import DataPlane, running_plane
from tests.support.patience import Patience, until
from tests.support.sender import Sender

PIPE, BACKFILL = "filled", "rep_backfill"
RATE, BACKFILL_RATE = 100.0, 150.0
STEP: Final = 300  # events of each phase: before, during the ramp, after the switch
FEED: Final = {"type": "topic", "partitions": 1, "from": "earliest"}
PATIENCE_S = 240.0


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataPlane]:
    """Kafka, two ingest replicas, the cell under its keeper, and a receiver."""
    with running_plane(tmp_path_factory.mktemp("backfill")) as plane:
        yield plane


@pytest.mark.timeout(1_500)  # includes the start of the data plane
def test_topic_from_earliest_has_every_acknowledged_event_exactly_once(plane: DataPlane):
    since_us = time.time_ns() // 1_000
    crm = {"type": "http", "url": plane.receiver.url("/crm")}
    key = plane.add_pipe(PIPE, {"crm": crm})
    with plane.sender(key, RATE) as sender:
        wait_for_more(sender)
        publish_revision(plane, {"crm": crm, "feed": FEED})
        use(plane, [(2, 50), (1, 50)])
        wait_for_more(sender)
        use(plane, [(2, 100)])
        start_backfill(plane, since_us)
        wait_for_more(sender)
        until(lambda: is_done(plane), "the end of the backfill", PATIENCE_S, seen=lambda: progress(plane))
    live = plane.settled(PIPE, sender.positions, PATIENCE_S)
    copies = plane.settled(BACKFILL, set(), PATIENCE_S)

    records = records_of(plane)
    assert Counter(position for position, _ in records) == Counter(sender.positions), "each is there exactly once"
    assert {position for position, replay in records if replay} == copies.acked == copies.at("feed", Bin.DELIVERED)
    assert {position for position, replay in records if not replay} == live.at("feed", Bin.DELIVERED)
    assert len(copies.acked) >= STEP
    assert len(live.at("feed", Bin.DELIVERED)) >= STEP
    assert live.at("crm", Bin.DELIVERED) == sender.positions, "the other destination gets no copy"
    assert live.lost() == copies.lost() == 0
    found = progress(plane)
    assert found is not None
    assert (found.done, found.error, found.asked) == (True, "", len(copies.acked))


def wait_for_more(sender: Sender) -> None:
    """Wait for some more acknowledged events."""
    before = len(sender.acked)
    until(lambda: len(sender.acked) >= before + STEP, "more events", PATIENCE_S)


def publish_revision(plane: DataPlane, destinations: dict[str, dict[str, Any]]) -> None:
    """Publish revision 2 with its topic; the events still take revision 1."""
    spec = parse_pipe_spec({"sources": {"shop": {}}, "destinations": destinations})
    plane.cluster.make_output_topic(PIPE, "feed")
    plane.cluster.publish(PlanRecord(PIPE, 2, spec, plane.cluster.version()))
    plane.cluster.publish_destinations(PIPE, {"feed": destinations["feed"]})
    plane.wait_applied()


def use(plane: DataPlane, weights: list[tuple[int, int]]) -> None:
    """Distribute the events to revisions, and wait until every ingest replica does."""
    cluster = plane.cluster
    cluster.publish(PipeRecord(PIPE, cluster.version(), TENANT, "rig", cluster.cell, "active", weights))

    def is_held() -> bool:
        plane.heartbeats.refresh()
        beats = [beat for beat in plane.heartbeats.latest.values() if beat.kind == "ingest"]
        return len(beats) == 2 and all(beat.table_offset >= cluster.published for beat in beats)

    until(is_held, "the weights at every ingest replica", 60, seen=lambda: plane.heartbeats.latest)


def start_backfill(plane: DataPlane, since_us: int) -> None:
    """Publish the replay that the control plane starts, once no request writes with the earlier weights any more."""
    time.sleep(5)
    unsent = unsent_revisions({1: False}, {})
    plane.cluster.publish_replay(BACKFILL, PIPE, ["feed"], since_us, BACKFILL_RATE, revision=2, revisions=unsent)


def progress(plane: DataPlane) -> ReplayProgress | None:
    """Return the newest stored progress of the backfill."""
    reader = place_reader(plane.broker.address)
    try:
        return read_progress(reader, plane.cluster.topics["signals"].name).get(BACKFILL)
    finally:
        reader.close()


def is_done(plane: DataPlane) -> bool:
    """Return True if the backfill has ended."""
    found = progress(plane)
    return found is not None and found.done


def records_of(plane: DataPlane) -> list[tuple[str, str]]:
    """Return the position of each record on the destination's topic, and the replay that wrote it, "" for none."""
    place = TopicPartition(output_topic(PIPE, "feed"), 0, 0)
    reader = place_reader(plane.broker.address)
    try:
        _, high = reader.get_watermark_offsets(place, timeout=10)
        reader.assign([place])
        records: list[Message] = []
        patience = Patience(60)
        while len(records) < high:
            assert not patience.is_over, f"{len(records)} of {high} records"
            records += [one for one in reader.consume(500, 0.5) if one.error() is None]
    finally:
        reader.close()
    headers = [dict(one.headers() or []) for one in records]
    return [(one["penstock-position"].decode(), one.get("penstock-replay", b"").decode()) for one in headers]
