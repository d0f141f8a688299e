"""Progress of consumer groups, from Kafka's offsets: sums over all partitions that a group reads."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from controlplane.kafka import kafka_clients
from dataplane.names import PartitionKey


class GroupProgress(NamedTuple):
    """Sums of offsets: `came` of the inputs' ends, `settled` of the group's committed offsets."""

    came: int
    settled: int


class OffsetReader:
    """Reads the progress of groups from the brokers."""

    def __init__(self, kafka: str) -> None:
        self._clients = kafka_clients(kafka)

    def progress(self, groups: Mapping[str, Iterable[PartitionKey]]) -> dict[str, GroupProgress]:
        """Return the progress of each group over the partitions that it reads.

        Raises: KafkaException while the brokers do not answer
        """
        partitions = {group: list(read) for group, read in groups.items()}
        wanted = {partition for read in partitions.values() for partition in read}
        if not wanted:
            return {}
        ends = self._clients.ends(wanted)
        return {group: self._progress(group, read, ends) for group, read in partitions.items()}

    def _progress(self, group: str, partitions: list[PartitionKey], ends: Mapping[PartitionKey, int]) -> GroupProgress:
        committed = self._clients.committed(group, partitions)
        return GroupProgress(
            came=sum(ends[partition] for partition in partitions),
            settled=sum(max(0, offset) for offset in committed.values()),
        )
