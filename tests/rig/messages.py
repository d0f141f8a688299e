"""Reads a cell's dead topic from its beginning."""

from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition

from dataplane.ledger.meta import read_meta
from dataplane.ledger.units import format_position
from tests.rig.data_plane import DataPlane


class DeadLetter(NamedTuple):
    """One record of the dead topic."""

    position: str
    node: str
    cause: str
    detail: str
    body: bytes


def dead_letters(plane: DataPlane, pipe: str) -> list[DeadLetter]:
    """Everything of one pipe that is dead."""
    topic = plane.cluster.topics["dead"]
    consumer = Consumer(
        {
            "bootstrap.servers": plane.broker.address,
            "group.id": "rig-dead",
            "enable.auto.commit": False,
            "log_level": 3,
        }
    )
    found = []
    for partition in range(topic.partitions):
        end = consumer.get_watermark_offsets(TopicPartition(topic.name, partition), timeout=10)[1]
        consumer.assign([TopicPartition(topic.name, partition, 0)])
        offset = 0
        while offset < end:
            message = consumer.poll(5)
            assert message is not None
            assert message.error() is None
            offset = message.offset() + 1
            headers = message.headers() or []
            meta, more = read_meta(headers), {name: value.decode() for name, value in headers[1:]}
            if meta.pipe == pipe:
                about = (more["penstock-node"], more["penstock-cause"], more["penstock-detail"])
                found.append(DeadLetter(format_position(meta.position), *about, message.value()))
    consumer.close()
    return found
