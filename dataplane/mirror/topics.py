"""Makes the topics of the standby cluster like those of the active one, and finds where copying begins."""

import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from confluent_kafka import Message, Producer, TopicPartition

from dataplane.mirror.clusters import RECORDS_MAX_BYTES, REQUEST_S, MirrorCluster
from dataplane.mirror.positions import DivergedError, MirrorError, PartitionCopy, start_of
from dataplane.mirror.records import MirrorRecords
from dataplane.mirror.selection import TopicLayout, differing_layouts
from dataplane.names import MIRROR_TOPIC, PartitionKey

log = logging.getLogger(__name__)

SETTLE_S: Final = 1.0  # a killed mirror's last requests reach the standby cluster within this time
VERIFIED: Final = 1  # records before the end of each partition that are compared with their originals
_MIRROR_CONFIG: Final = {
    "cleanup.policy": "compact",
    "segment.ms": "600000",
    "min.cleanable.dirty.ratio": "0.01",
    "max.message.bytes": str(RECORDS_MAX_BYTES + 1_024),
}


def ensure_topics(active: Mapping[str, TopicLayout], standby: MirrorCluster) -> None:
    """Create the topics that the standby cluster lacks, and give grown ones as many partitions.

    Raises DivergedError if it has more partitions than the active cluster, and KafkaException.
    """
    known = standby.partitions()
    if problems := differing_layouts(active, known):
        raise DivergedError("; ".join(problems))
    replication = max((layout.replication for layout in active.values()), default=1)
    own = TopicLayout(MIRROR_TOPIC, 1, replication, _MIRROR_CONFIG)
    missing = [layout for layout in (own, *active.values()) if layout.name not in known]
    standby.create([layout.of_copy for layout in missing])
    standby.grow({n: one.partitions for n, one in active.items() if n in known and known[n] < one.partitions})
    if missing:
        log.info("created %d topics on the standby cluster", len(missing))


def settled_ends(cluster: MirrorCluster, places: Collection[PartitionKey]) -> dict[PartitionKey, int]:
    """Return the ends of partitions to which nothing was appended for SETTLE_S. Raises KafkaException, MirrorError.

    Requests of a mirror that was killed a moment ago may arrive later. Copies that are sent before them would get other
    offsets than their originals.
    """
    ends = cluster.ends(places)
    time.sleep(SETTLE_S)
    if (later := cluster.ends(places)) != ends:
        moved = sorted({place[0] for place in places if later[place] != ends[place]})
        raise MirrorError(f"another process still writes to {cluster.address.servers}: {', '.join(moved)}")
    return later


def begin_copies(
    layouts: Mapping[str, TopicLayout],
    active: MirrorCluster,
    standby: MirrorCluster,
    records: MirrorRecords,
    require: Callable[[], None],
) -> dict[PartitionKey, PartitionCopy]:
    """Return where the copy of each partition continues; fill up partitions whose first records are gone.

    require: raises MirrorError if nothing may be written any more

    Raises DivergedError, MirrorError, KafkaException.
    """
    copied = [layout for layout in layouts.values() if layout.is_copied]
    exact = [place for layout in copied if not layout.is_compacted for place in layout.places]
    keyed = [place for layout in copied if layout.is_compacted for place in layout.places]
    begins, ends = active.begins([*exact, *keyed]), active.ends([*exact, *keyed])
    standby_ends = settled_ends(standby, exact)
    missing = {
        place: start_of(place, begin=begins[place], end=ends[place], standby_end=standby_ends[place]) for place in exact
    }
    verify_ends(active, standby, {place: end for place, end in standby_ends.items() if begins[place] < end})
    fill_up(standby, {place: count for place, count in missing.items() if count}, require)
    require()
    emptied = {place: begins[place] for place in exact if begins[place] and standby_ends[place] <= begins[place]}
    standby.delete_before(emptied)
    starts = {place: max(standby_ends[place], begins[place]) for place in exact}
    known = records.progress.stored if records.progress else {}
    keyed_ends = standby.ends(keyed)
    for topic, partition in keyed:
        stored, place = known.get(topic, {}).get(partition, 0), (topic, partition)
        is_known = keyed_ends[place] > 0 and begins[place] <= stored <= ends[place]  # not if it was created again
        starts[place] = stored if is_known else begins[place]
    return {place: PartitionCopy(place, start, is_exact=place in missing) for place, start in starts.items()}


def fill_up(standby: MirrorCluster, missing: Mapping[PartitionKey, int], require: Callable[[], None]) -> None:
    """Append so many empty records to partitions. The caller deletes them.

    A partition of Kafka begins at offset 0. Where the active cluster has deleted older records (retention), as many
    fillers take their offsets, so that the next copy has that of its original. Raises KafkaException, MirrorError.
    """
    if not missing:
        return
    log.warning("filling up %d offsets of records that the active cluster has deleted", sum(missing.values()))
    producer = standby.producer("penstock-mirror-filler")
    for (topic, partition), count in missing.items():
        for _ in range(count):
            _produce(producer, topic, partition, require)
    deadline_s = time.monotonic() + 60.0
    while len(producer):
        producer.poll(0.1)
        require()
        if time.monotonic() > deadline_s:
            raise MirrorError("the standby cluster does not store fillers")


def _produce(producer: Producer, topic: str, partition: int, require: Callable[[], None]) -> None:
    while True:
        require()
        try:
            producer.produce(topic, None, partition=partition)
            return
        except BufferError:
            producer.poll(0.1)


def verify_ends(active: MirrorCluster, standby: MirrorCluster, ends: Mapping[PartitionKey, int]) -> None:
    """Compare the last mirrored record of each partition with its original.

    ends: ends of the standby cluster, where the active one still has the record before

    Raises DivergedError if a record differs, and KafkaException.
    """
    asked = {place: end - VERIFIED for place, end in ends.items()}
    theirs, ours = read_at(active, asked), read_at(standby, asked)
    for place, message in ours.items():
        if content(message) != content(theirs[place]):
            raise DivergedError(f"{place[0]} [{place[1]}]: the records at offset {asked[place]} differ")


def read_at(cluster: MirrorCluster, offsets: Mapping[PartitionKey, int]) -> dict[PartitionKey, Message]:
    """Return one record of each partition. Raises KafkaException, MirrorError if one cannot be read."""
    found: dict[PartitionKey, Message] = {}
    if not offsets:
        return found
    reader = cluster.reader()
    try:
        reader.assign([TopicPartition(*place, offset) for place, offset in offsets.items()])
        deadline_s = time.monotonic() + 4 * REQUEST_S
        while len(found) < len(offsets):
            for message in reader.consume(500, 0.2):
                place = (message.topic(), message.partition())
                if message.error() is not None:
                    raise MirrorError(f"{place[0]} [{place[1]}]: {message.error().str()}")
                found.setdefault(place, message)
            reader.pause([TopicPartition(*place) for place in found])
            if time.monotonic() > deadline_s:
                raise MirrorError("cannot read the last records of the topics")
    finally:
        reader.close()
    return found


def content(message: Message) -> tuple[Any, ...]:
    """Return what a copy has in common with its original: key, value and headers."""
    return message.key(), message.value(), message.headers() or []
