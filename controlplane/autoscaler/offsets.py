"""Progress of consumer groups by Kafka's offsets: sums over all partitions that a group reads."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from controlplane.kafka import Place, kafka_clients


class Progress(NamedTuple):
    """Offsets, summed up: where the inputs end, and where the group has committed."""

    came: int
    settled: int


class Offsets:
    """Asks the brokers."""

    def __init__(self, kafka: str) -> None:
        self._clients = kafka_clients(kafka)

    def progress(self, groups: Mapping[str, Iterable[Place]]) -> dict[str, Progress]:
        """Return the progress of each group over the partitions that it reads.

        Raises: KafkaException while the brokers do not answer
        """
        partitions = {group: list(read) for group, read in groups.items()}
        wanted = {place for read in partitions.values() for place in read}
        if not wanted:
            return {}
        ends = self._clients.ends(wanted)
        return {group: self._progress(group, read, ends) for group, read in partitions.items()}

    def _progress(self, group: str, partitions: list[Place], ends: Mapping[Place, int]) -> Progress:
        committed = self._clients.committed(group, partitions)
        return Progress(
            came=sum(ends[place] for place in partitions),
            settled=sum(max(0, offset) for offset in committed.values()),
        )
