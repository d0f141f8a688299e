"""How much has come to a group and how much of it is settled, as Kafka says it: sums over all of its partitions."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import OffsetSpec

from controlplane.kafka import admin_client

REQUEST_S: Final = 5.0
Place = tuple[str, int]  # (topic, partition)


class Progress(NamedTuple):
    """Offsets, summed up: where the inputs end, and where the group has committed."""

    came: int
    settled: int


class Offsets:
    """Asks the brokers. Raises KafkaException while they do not answer."""

    def __init__(self, kafka: str) -> None:
        self._admin = admin_client(kafka)

    def progress(self, groups: Mapping[str, Iterable[Place]]) -> dict[str, Progress]:
        """Of each group, over the places that it reads."""
        places = {group: [TopicPartition(*place) for place in read] for group, read in groups.items()}
        wanted = {place: OffsetSpec.latest() for read in places.values() for place in read}
        if not wanted:
            return {}
        ends = self._admin.list_offsets(wanted, request_timeout=REQUEST_S)
        committed = {group: self._committed(group, read) for group, read in places.items()}
        end_of = {(place.topic, place.partition): future.result().offset for place, future in ends.items()}
        return {
            group: Progress(
                came=sum(end_of[place.topic, place.partition] for place in read),
                settled=sum(max(0, place.offset) for place in committed[group].result().topic_partitions),
            )
            for group, read in places.items()
        }

    def _committed(self, group: str, places: list[Any]) -> Any:
        asked = ConsumerGroupTopicPartitions(group, places)
        return self._admin.list_consumer_group_offsets([asked], request_timeout=REQUEST_S)[group]
