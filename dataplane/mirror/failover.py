"""Failover to the standby cluster, and the events that were not mirrored. Used by `manage.py region`."""

import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import msgspec
from confluent_kafka import KafkaException, Message, TopicPartition
from msgspec import Struct

from dataplane.ledger.meta import read_meta
from dataplane.ledger.units import format_position, position_of
from dataplane.mirror.clusters import REQUEST_S, MirrorCluster
from dataplane.mirror.positions import GroupOffset, MirrorError, by_topic
from dataplane.mirror.records import (
    PROMOTION_KEY,
    MirrorProgress,
    MirrorRecords,
    PartitionOffsets,
    Promotion,
)
from dataplane.mirror.selection import TopicLayout, groups_of, ingest_topics, parse_cell_topic
from dataplane.mirror.topics import settled_ends
from dataplane.names import PartitionKey

SILENT_US: Final = 10_000_000  # a mirror that has not reported for so long does not run
STOP_S: Final = 60.0
POLL_S: Final = 0.2


class RegionState(Struct, frozen=True):
    """Both clusters at one moment.

    is_active_up: the active cluster answers
    is_quiet:     and no process writes to it
    behind:       messages that are not mirrored; while the active cluster is away, those of the mirror's last look
    """

    now_us: int
    records: MirrorRecords
    is_active_up: bool
    is_quiet: bool
    behind: int


def read_state(active: MirrorCluster, standby: MirrorCluster) -> RegionState:
    """Ask both clusters. Raises KafkaException if the standby cluster does not answer."""
    records = standby.read_records()
    progress = records.progress
    behind = sum(topic.behind for topic in progress.topics.values()) if progress else 0
    is_quiet = False
    try:
        layouts = [layout for layout in active.layouts().values() if not layout.is_compacted]
        ends = settled_ends(active, [place for layout in layouts for place in layout.places])
        is_up = is_quiet = True
        mirrored = [place for layout in layouts if layout.is_copied for place in layout.places]
        stored = _present_ends(standby, mirrored)
        behind = sum(max(0, ends[place] - stored.get(place, 0)) for place in mirrored)
    except MirrorError:
        is_up = True
    except KafkaException:
        is_up = False
    return RegionState(time.time_ns() // 1_000, records, is_up, is_quiet, behind)


def _present_ends(cluster: MirrorCluster, places: Collection[PartitionKey]) -> dict[PartitionKey, int]:
    known = cluster.partitions()
    return cluster.ends([place for place in places if place[1] < known.get(place[0], 0)])


def failover_refusals(state: RegionState, *, accept_loss: bool) -> list[str]:
    """Return why a failover is refused now; [] if it may begin. Pure.

    accept_loss: begin although the active cluster has, or may get, events that are not mirrored
    """
    progress, promotion = state.records.progress, state.records.promotion
    if promotion is not None and promotion.stored:
        return ["the standby cluster is the active one already"]
    if progress is None:
        return ["no mirror has written to the standby cluster"]
    refusals = []
    if not progress.checkpoint_us:
        refusals.append("the standby cluster has no committed offsets yet: the first copy is not complete")
    if state.is_active_up and not accept_loss:
        if not state.is_quiet:
            refusals.append("processes write to the active cluster: stop its ingest and its cells, or accept loss")
        elif state.behind:
            refusals.append(f"{state.behind} messages of the active cluster are not mirrored: wait, or accept loss")
    return refusals


class FailoverReport(Struct, frozen=True):
    """Result of a failover. `to_read`: messages from each group's committed offset on, by group."""

    promotion: Promotion
    to_read: dict[str, int]
    took_s: float


def promote_standby(active: str, standby: MirrorCluster) -> FailoverReport:
    """Stop the mirror for good, complete the offsets of all groups, and record how far the copies reach.

    Safe to run again after an interruption. Raises MirrorError if a mirror does not stop, and KafkaException.
    """
    began_s = time.monotonic()
    progress = standby.read_records().progress
    promotion = Promotion(
        time.time_ns() // 1_000,
        active,
        complete_us=progress.complete_us if progress else 0,
        checkpoint_us=progress.checkpoint_us if progress else 0,
    )
    standby.store(PROMOTION_KEY, msgspec.json.encode(promotion))
    _wait_stopped(standby, promotion.at_us)
    layouts = standby.layouts()
    places = [place for layout in layouts.values() if not layout.is_compacted for place in layout.places]
    ends = settled_ends(standby, places)
    to_read = _complete_offsets(standby, layouts, ends)
    promotion = msgspec.structs.replace(promotion, stored=by_topic(ends, layouts))
    standby.store(PROMOTION_KEY, msgspec.json.encode(promotion))
    return FailoverReport(promotion, to_read, time.monotonic() - began_s)


def _wait_stopped(standby: MirrorCluster, since_us: int) -> None:
    """Wait until the mirror has reported that it stopped, or has been silent for long."""
    deadline_s = time.monotonic() + STOP_S
    while not has_stopped(standby.read_records().progress, since_us, time.time_ns() // 1_000):
        if time.monotonic() > deadline_s:
            raise MirrorError("the mirror has not stopped: end its process and repeat the command")
        time.sleep(POLL_S)


def has_stopped(progress: MirrorProgress | None, since_us: int, now_us: int) -> bool:
    """Return True if the mirror has stopped since a time, or does not run. Pure."""
    if progress is None or now_us - max(progress.at_us, 0) > SILENT_US:
        return True
    return progress.state == "stopped" and progress.at_us >= since_us


def _complete_offsets(
    standby: MirrorCluster, layouts: Mapping[str, TopicLayout], ends: Mapping[PartitionKey, int]
) -> dict[str, int]:
    """Commit the first offset where a group has none; return how many messages each group has to read."""
    to_read: dict[str, int] = {}
    for group, places in groups_of(layouts.values()).items():
        committed = standby.committed(group, places)
        begins = standby.begins([place for place, one in committed.items() if one.offset < 0])
        if first := {place: GroupOffset(offset) for place, offset in begins.items()}:
            standby.commit(group, first)
        to_read[group] = sum(ends[place] - (committed | first)[place].offset for place in places)
    return to_read


class UnmirroredEvent(Struct, frozen=True):
    """An event on the ingest topic of the former active cluster that the other one does not have."""

    id: str
    pipe: str
    source: str
    position: str
    ingest_time_us: int
    topic: str
    partition: int
    offset: int


def unmirrored_events(former: MirrorCluster, stored: PartitionOffsets) -> Iterator[UnmirroredEvent]:
    """Yield the events of the former active cluster at and after these offsets. Raises KafkaException, MirrorError.

    They were stored there, and in general acknowledged. Lanes may have delivered some of them before the cluster died.
    """
    known = former.partitions()
    places = [(topic, number) for topic in ingest_topics(known) for number in range(known[topic])]
    begins, ends = former.begins(places), former.ends(places)
    first = {place: max(begins[place], stored.get(place[0], {}).get(place[1], 0)) for place in places}
    for message in read_between(former, first, ends):
        yield _described(message)


def read_between(
    cluster: MirrorCluster, first: Mapping[PartitionKey, int], ends: Mapping[PartitionKey, int]
) -> Iterator[Message]:
    """Yield all records of partitions between two offsets. Raises MirrorError if they cannot be read."""
    open_places = {place for place, offset in first.items() if offset < ends[place]}
    reader = cluster.reader()
    try:
        reader.assign([TopicPartition(*place, first[place]) for place in open_places])
        deadline_s = time.monotonic() + 4 * REQUEST_S
        while open_places:
            for message in reader.consume(1_000, 0.5):
                place = (message.topic(), message.partition())
                if message.error() is not None:
                    raise MirrorError(f"{place[0]} [{place[1]}]: {message.error().str()}")
                deadline_s = time.monotonic() + 4 * REQUEST_S
                if message.offset() < ends[place]:
                    yield message
                if message.offset() >= ends[place] - 1:
                    open_places.discard(place)
            if time.monotonic() > deadline_s:
                raise MirrorError(f"cannot read {', '.join(sorted(place[0] for place in open_places))}")
    finally:
        reader.close()


def _described(message: Any) -> UnmirroredEvent:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    cell_topic = parse_cell_topic(topic)
    position = format_position(position_of(cell_topic.generation if cell_topic else 0, partition, offset))
    try:
        meta = read_meta(message.headers() or [])
    except (KeyError, msgspec.DecodeError):
        return UnmirroredEvent("", "", "", position, 0, topic, partition, offset)
    return UnmirroredEvent(meta.id, meta.pipe, meta.source, position, meta.ingest_time_us, topic, partition, offset)


def empty_former(former: MirrorCluster) -> int:
    """Delete all topics of Penstock on the former active cluster, so that it can be mirrored into; return their number.

    Its topics end differently: Kafka cannot remove records from the end. Raises MirrorError if a process still writes
    to it, and KafkaException.
    """
    layouts = former.layouts()
    settled_ends(former, [place for layout in layouts.values() for place in layout.places])
    former.delete(former.partitions())
    return len(layouts)
