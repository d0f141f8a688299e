"""Failover to the standby cluster, and the events that were not mirrored. Used by `manage.py region`."""

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from confluent_kafka import KafkaException, Message, TopicPartition
from msgspec import Struct

from dataplane.ledger.meta import read_meta
from dataplane.ledger.units import format_position, position_of
from dataplane.mirror.clusters import AWAY, REQUEST_S, MirrorCluster, first_line
from dataplane.mirror.positions import Ends, GroupOffset, MirrorError, OffsetsOfGroup, by_topic
from dataplane.mirror.records import (
    PROMOTION_KEY,
    MirrorProgress,
    PartitionOffsets,
    Promotion,
)
from dataplane.mirror.refusals import ActiveState, RegionState, is_silent
from dataplane.mirror.selection import (
    APPEND_TIME,
    ORIGINAL_TIME,
    TIMESTAMP_TYPE,
    TopicLayout,
    groups_of,
    ingest_topics,
    parse_cell_topic,
)
from dataplane.mirror.topics import settled_ends
from dataplane.names import PartitionKey

STOP_S: Final = 60.0
POLL_S: Final = 0.2


def read_state(active: MirrorCluster, standby: MirrorCluster) -> RegionState:
    """Ask both clusters. Raises KafkaException if the standby cluster does not respond."""
    records, standby_id = standby.read_records(), standby.id()
    layouts = standby.layouts()
    ends = standby.ends([place for layout in layouts.values() for place in layout.places])
    missing = missing_offsets(standby, layouts)
    return RegionState(
        time.time_ns() // 1_000,
        records,
        standby_id,
        _active_state(active, ends, records.progress),
        {group: count for group, offsets in missing.items() if (count := _to_read(offsets, ends))},
    )


def _active_state(active: MirrorCluster, standby_ends: Ends, progress: MirrorProgress | None) -> ActiveState:
    behind = sum(topic.behind for topic in progress.topics.values()) if progress else 0
    cluster_id = ""
    try:
        cluster_id = active.id()
        layouts = active.layouts()
        has_ingest = bool(ingest_topics(layouts))
        ends = settled_ends(active, [place for layout in layouts.values() for place in layout.places])
    except MirrorError:
        return ActiveState(cluster_id, is_up=True, has_ingest=has_ingest, behind=behind)
    except KafkaException as exc:
        if exc.args[0].code() in AWAY:
            return ActiveState(behind=behind)
        return ActiveState(cluster_id, is_up=True, error=first_line(exc), behind=behind)
    behind = count_behind(layouts, ends, standby_ends, progress)
    return ActiveState(cluster_id, is_up=True, is_quiet=True, has_ingest=has_ingest, behind=behind)


def count_behind(
    layouts: Mapping[str, TopicLayout], ends: Ends, standby_ends: Ends, progress: MirrorProgress | None
) -> int:
    """Return how many messages of the active cluster are not mirrored. Pure.

    What the mirror has reported counts, and less where the standby cluster has less: a topic may have been deleted.
    """
    stored = progress.stored if progress else {}
    behind = 0
    for layout in layouts.values():
        for place in layout.places if layout.is_copied else ():
            copied = stored.get(place[0], {}).get(place[1], 0)
            is_at_offset = not layout.is_compacted
            behind += max(0, ends[place] - (min(copied, standby_ends.get(place, 0)) if is_at_offset else copied))
    return behind


class FailoverReport(Struct, frozen=True):
    """Result of a failover. `to_read`: messages from each group's committed offset on, by group."""

    promotion: Promotion
    to_read: dict[str, int]
    took_s: float


def promote_standby(former: str, standby: MirrorCluster, *, mirror_is_dead: bool) -> FailoverReport:
    """Stop the mirror for good, complete the offsets of all groups, and record how far the copies reach.

    former: bootstrap servers of the cluster that was active

    Safe to run again after an interruption. Raises MirrorError if a mirror does not stop, and KafkaException.
    """
    began_s = time.monotonic()
    progress = standby.read_records().progress
    promotion = Promotion(
        time.time_ns() // 1_000,
        former,
        former_id=progress.active_id if progress else "",
        complete_us=progress.complete_us if progress else 0,
        checkpoint_us=progress.checkpoint_us if progress else 0,
    )
    standby.store(PROMOTION_KEY, msgspec.json.encode(promotion))
    _wait_stopped(standby, promotion.at_us, mirror_is_dead=mirror_is_dead)
    layouts = standby.layouts()
    places = [place for layout in layouts.values() if not layout.is_compacted for place in layout.places]
    ends = settled_ends(standby, places)
    to_read = _complete_offsets(standby, layouts, ends)
    copied = [name for name, layout in layouts.items() if layout.config.get(TIMESTAMP_TYPE) == ORIGINAL_TIME]
    standby.configure(copied, TIMESTAMP_TYPE, APPEND_TIME)  # of new records; copies keep their times
    promotion = msgspec.structs.replace(promotion, stored=by_topic(ends, layouts))
    standby.store(PROMOTION_KEY, msgspec.json.encode(promotion))
    return FailoverReport(promotion, to_read, time.monotonic() - began_s)


def _wait_stopped(standby: MirrorCluster, since_us: int, *, mirror_is_dead: bool) -> None:
    """Wait until the mirror has reported that it stopped, or a dead one has been silent for long."""
    deadline_s = time.monotonic() + STOP_S
    while not has_stopped(
        standby.read_records().progress, since_us, time.time_ns() // 1_000, mirror_is_dead=mirror_is_dead
    ):
        if time.monotonic() > deadline_s:
            raise MirrorError("the mirror has not stopped: end its process and repeat with --mirror-is-dead")
        time.sleep(POLL_S)


def has_stopped(progress: MirrorProgress | None, since_us: int, now_us: int, *, mirror_is_dead: bool) -> bool:
    """Return True if the mirror has stopped since a time, or had stopped before and stays silent. Pure."""
    if progress is None:
        return True
    has_ended = progress.state == "stopped"
    return (has_ended and progress.at_us >= since_us) or ((has_ended or mirror_is_dead) and is_silent(progress, now_us))


def missing_offsets(
    standby: MirrorCluster, layouts: Mapping[str, TopicLayout]
) -> dict[str, dict[PartitionKey, GroupOffset]]:
    """Return the first offsets, by group, of the partitions of which it has committed none."""
    missing: dict[str, dict[PartitionKey, GroupOffset]] = {}
    for group, places in groups_of(layouts.values()).items():
        lacking = [place for place, one in standby.committed(group, places).items() if one.offset < 0]
        if lacking:
            missing[group] = {place: GroupOffset(offset) for place, offset in standby.begins(lacking).items()}
    return missing


def _to_read(offsets: OffsetsOfGroup, ends: Ends) -> int:
    return sum(ends[place] - one.offset for place, one in offsets.items())


def _complete_offsets(standby: MirrorCluster, layouts: Mapping[str, TopicLayout], ends: Ends) -> dict[str, int]:
    """Commit the first offset where a group has none; return how many messages each group has to read."""
    for group, offsets in missing_offsets(standby, layouts).items():
        standby.commit(group, offsets)
    groups = groups_of(layouts.values())
    return {group: _to_read(standby.committed(group, places), ends) for group, places in groups.items()}


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


class UnmirroredPart(Struct, frozen=True):
    """Part of the ingest topics of the former active cluster that the other one lacks.

    deleted: events of it that retention has deleted, and nobody can name
    """

    first: Ends
    ends: Ends
    deleted: int


def unmirrored_part(former: MirrorCluster, stored: PartitionOffsets) -> UnmirroredPart:
    """Find what the former active cluster has at and after these offsets. Raises KafkaException."""
    known = former.partitions()
    places = [(topic, number) for topic in ingest_topics(known) for number in range(known[topic])]
    begins, ends = former.begins(places), former.ends(places)
    since = {place: stored.get(place[0], {}).get(place[1], 0) for place in places}
    first = {place: max(begins[place], since[place]) for place in places}
    return UnmirroredPart(first, ends, sum(first[place] - since[place] for place in places))


def unmirrored_events(former: MirrorCluster, part: UnmirroredPart) -> Iterator[UnmirroredEvent]:
    """Yield the events of a part. Raises KafkaException, MirrorError.

    They were stored there, and in general acknowledged. Lanes may have delivered some of them before the cluster died.
    """
    for message in read_between(former, part.first, part.ends):
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


def empty_former(former: MirrorCluster, named: UnmirroredPart) -> int:
    """Delete all topics of Penstock on the former active cluster, so that it can be mirrored into; return their number.

    Its topics end differently: Kafka cannot remove records from the end. Raises MirrorError if a process still writes
    to it, or has since its unmirrored events were named, and KafkaException.
    """
    layouts = former.layouts()
    ends = settled_ends(former, [place for layout in layouts.values() for place in layout.places])
    if any(ends[place] != end for place, end in named.ends.items()):
        raise MirrorError("the former cluster has got new events meanwhile: end its processes, and name another file")
    former.delete(former.partitions())
    return len(layouts)
