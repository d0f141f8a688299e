"""Reader of the control topic, from its beginning to its end."""

from confluent_kafka import TopicPartition

from controlplane.settings import control_settings
from dataplane.names import CONTROL_TOPIC
from dataplane.tables.records import Record, decode_record
from tests.support.kafka import admin_consumer


def control_records() -> list[Record]:
    """Return every record that is still in the topic, oldest first."""
    consumer = admin_consumer({"bootstrap.servers": control_settings().kafka, "group.id": "penstock.test"})
    try:
        offset, end = consumer.get_watermark_offsets(TopicPartition(CONTROL_TOPIC, 0), timeout=10)
        consumer.assign([TopicPartition(CONTROL_TOPIC, 0, offset)])
        records = []
        while offset < end:
            for message in consumer.consume(1000, 0.5):
                if message.error() is None:
                    offset = message.offset() + 1
                    records.append(decode_record(message.value()))
        return records
    finally:
        consumer.close()
