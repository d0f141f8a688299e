"""Binds the rows of Postgres to a promoted cluster: to the ids of its topics, and to the ends of its logs."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.db import transaction
from django.db.models import F, Max, Model, QuerySet

from controlplane.locks import try_lock, unlock
from controlplane.observer.reader import lock_name
from controlplane.topics import ExistingTopic, TopicCreator
from dataplane.kafka_settings import kafka_settings
from dataplane.mirror.clusters import ClusterAddress, MirrorCluster
from dataplane.mirror.records import PartitionOffsets, Promotion
from dataplane.names import PartitionKey
from mgmt.deliveries.services.offset_sets import cut_places
from mgmt.models import AuditOffset, Cell, DeadLetter, HeldMessage, HighOffset, SettledOffset, Topic


class TopicMissingOnClusterError(Exception):
    """A topic of a cell does not exist on the cluster, or has another number of partitions."""


class ObserverRunsError(Exception):
    """An Observer reads the former cluster, and stores its offsets."""


def bind_topics(found: dict[str, ExistingTopic], stored: PartitionOffsets) -> int:
    """Bind all rows to the promoted cluster; return how many rows of topics changed. Without a change, do nothing.

    A topic with another id usually means that it was deleted and recreated, so that no offset is valid for it, and the
    Provisioner stops. The mirror keeps offsets, so here those below the ends of the promotion remain valid.

    stored: ends of the promotion. A record at or after them is another one than on the former cluster

    Raises TopicMissingOnClusterError, ObserverRunsError.
    """
    changed = 0
    with transaction.atomic():
        for row in Topic.objects.select_for_update().order_by("name"):
            topic = found.get(row.name)
            if topic is None or topic.partitions < row.partitions:
                raise TopicMissingOnClusterError(f"{row.name}: needs {row.partitions} partitions on the cluster")
            if topic.topic_id != row.topic_id:
                Topic.objects.filter(pk=row.pk).update(topic_id=topic.topic_id)
                changed += 1
        if changed:
            _require_no_observer()
            _cut({(topic, number): end for topic, ends in stored.items() for number, end in ends.items()})
            Cell.objects.update(version=F("version") + 1)
    return changed


def _require_no_observer() -> None:
    for place in AuditOffset.objects.select_for_update().values_list("topic", "partition"):
        if not try_lock(lock_name(place)):
            raise ObserverRunsError("an Observer of the former cluster runs: stop it, and repeat the command")
        unlock(lock_name(place))


def _cut(ends: Mapping[PartitionKey, int]) -> None:
    """Forget what was read, settled or listed at an offset that the promoted cluster gives to another record."""
    lasts = {place: end - 1 for place, end in ends.items()}
    for rows, end in _above(AuditOffset, "next_offset", ends):
        rows.update(next_offset=end)
    for rows, end in _above(SettledOffset, "offset", ends):
        rows.update(offset=end)
    for rows, last in _above(HighOffset, "offset", lasts):
        rows.update(offset=last)
    for listed in (DeadLetter, HeldMessage):
        for rows, _ in _above(listed, "offset", lasts):
            rows.delete()
    cut_places(ends)


def _above(model: type[Model], field: str, most: Mapping[PartitionKey, int]) -> Iterator[tuple[QuerySet[Any], int]]:
    """Yield the rows of each partition whose offset is above `most`, and that offset."""
    highest = model._default_manager.values_list("topic", "partition").annotate(Max(field)).order_by()
    for topic, partition, offset in list(highest):
        last = most.get((topic, partition))
        if last is not None and offset > last:
            above = {f"{field}__gt": last}
            yield model._default_manager.filter(topic=topic, partition=partition, **above), last


def promotion_of(cluster: MirrorCluster) -> Promotion | None:
    """Return the promotion of a cluster, once it is complete. Raises KafkaException, MirrorError."""
    promotion = cluster.read_records().promotion
    return promotion if promotion is not None and promotion.stored else None


def waits_for_bind(kafka: str) -> bool:
    """Return True if the cluster was promoted, and Postgres names the former one's topics. Raises KafkaException.

    Nothing may be read then: stored offsets are those of the former cluster.
    """
    known = dict(Topic.objects.values_list("name", "topic_id"))
    found = TopicCreator(kafka).find(known) if known else {}
    if all(topic.topic_id == known[name] for name, topic in found.items()):
        return False
    cluster = MirrorCluster(ClusterAddress(kafka, kafka_settings()))
    try:
        return promotion_of(cluster) is not None
    finally:
        cluster.close()
