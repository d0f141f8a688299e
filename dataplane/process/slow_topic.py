"""Progress of the slow topic, queried from the brokers. Joins no group and commits nothing."""

from typing import Any, Final

from confluent_kafka import KafkaException, TopicPartition

from dataplane.kafka_clients import make_offset_client
from dataplane.names import lane_group

ANSWER_S: Final = 0.3  # short, because the lane blocks on it; the query is repeated later


class KafkaSlowTopic:
    """Slow topic of one cell, and the commits of its slow lanes' group. The client is created on first use."""

    def __init__(self, kafka: str, cell: str, topic: str) -> None:
        self._kafka, self._group, self._topic = kafka, lane_group(cell, "process-slow"), topic
        self._consumer: Any = None

    def progress(self, partition: int) -> tuple[int, int] | None:
        """Return the committed offset and the end offset of a partition; None if the broker does not respond now.

        Blocks for at most twice ANSWER_S.
        """
        consumer = self._consumer = self._consumer or self._open()
        topic_partition = TopicPartition(self._topic, partition)
        try:
            (committed,) = consumer.committed([topic_partition], timeout=ANSWER_S)
            _, end = consumer.get_watermark_offsets(topic_partition, timeout=ANSWER_S)
        except KafkaException:
            return None
        if committed.error is not None or committed.offset < 0:
            return None
        return int(committed.offset), int(end)

    def close(self) -> None:
        """Close the client, if it exists."""
        if self._consumer is not None:
            self._consumer.close()

    def _open(self) -> Any:
        return make_offset_client(self._kafka, self._group)
