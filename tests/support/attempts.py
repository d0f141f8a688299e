"""Reader of a cell's attempts topic, from its beginning."""

from confluent_kafka import Consumer, TopicPartition

from dataplane.ledger.audit import AttemptRecord, decode_attempts
from tests.support.data_plane import DataPlane


def attempts_of(plane: DataPlane, pipe: str) -> list[AttemptRecord]:
    """Return every reported attempt of one pipe, in the order of each partition; delivered ones are a sample."""
    topic = plane.cluster.topics["attempts"]
    consumer = Consumer(
        {
            "bootstrap.servers": plane.broker.address,
            "group.id": "rig-attempts",
            "enable.auto.commit": False,
            "log_level": 3,
        }
    )
    found: list[AttemptRecord] = []
    for partition in range(topic.partitions):
        end = consumer.get_watermark_offsets(TopicPartition(topic.name, partition), timeout=10)[1]
        consumer.assign([TopicPartition(topic.name, partition, 0)])
        offset = 0
        while offset < end:
            message = consumer.poll(5)
            assert message is not None
            assert message.error() is None
            offset = message.offset() + 1
            found += [attempt for attempt in decode_attempts(message.value()).attempts if attempt.pipe == pipe]
    consumer.close()
    return found
