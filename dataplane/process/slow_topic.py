"""How far the slow topic is written and read, asked of the brokers. Joins no group, and commits nothing."""

from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from dataplane.names import lane_group

ANSWER_S: Final = 0.3  # the lane waits for it, so it is short; it is asked again


class KafkaSlowTopic:
    """The topic of one cell, and what the group of its slow lanes has committed. Its client is made when needed."""

    def __init__(self, kafka: str, cell: str, topic: str) -> None:
        self._kafka, self._group, self._topic = kafka, lane_group(cell, "process-slow"), topic
        self._consumer: Any = None

    def progress(self, partition: int) -> tuple[int, int] | None:
        """What its lanes have committed of a partition, and where that ends; None if nobody answers now."""
        consumer = self._consumer = self._consumer or self._open()
        place = TopicPartition(self._topic, partition)
        try:
            (committed,) = consumer.committed([place], timeout=ANSWER_S)
            _, end = consumer.get_watermark_offsets(place, timeout=ANSWER_S)
        except KafkaException:
            return None
        if committed.error is not None or committed.offset < 0:
            return None
        return int(committed.offset), int(end)

    def close(self) -> None:
        """Close the client, if there is one."""
        if self._consumer is not None:
            self._consumer.close()

    def _open(self) -> Any:
        return Consumer(
            {
                "bootstrap.servers": self._kafka,
                "group.id": self._group,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "log_level": 3,
            }
        )
