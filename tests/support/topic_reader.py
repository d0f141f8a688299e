"""Reads what a topic has."""

from collections.abc import Iterator

from confluent_kafka import Message, TopicPartition

from tests.support.kafka import admin_consumer


def read_topic(kafka: str, topic: str, partitions: int) -> Iterator[Message]:
    """Yield the messages that a topic has now, in the order of each partition."""
    consumer = admin_consumer(
        {"bootstrap.servers": kafka, "group.id": f"read-{topic}", "enable.auto.commit": False, "log_level": 3}
    )
    for partition in range(partitions):
        offset, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
        consumer.assign([TopicPartition(topic, partition, offset)])
        while offset < end:
            message = consumer.poll(5)
            assert message is not None
            assert message.error() is None
            offset = message.offset() + 1
            yield message
    consumer.close()
