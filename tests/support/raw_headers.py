"""Producer of records whose header name is not UTF-8, as other clients can write them.

The producer of confluent-kafka accepts only text, so the wheel's librdkafka is called directly, through ctypes.
"""

import ctypes
from pathlib import Path

import confluent_kafka
from confluent_kafka import Consumer, Producer, TopicPartition

from dataplane.ingest.feeds import FeedKey, FeedRecord, record_of

_TOPIC, _VALUE, _HEADER, _END = 1, 4, 9, 0  # rd_kafka_vtype_t


def produce_raw_headers(servers: str, topic: str, name: bytes, count: int) -> None:
    """Produce the record `{}` `count` times, with one header of this name."""
    [library] = Path(confluent_kafka.__file__).parent.parent.glob("confluent_kafka.libs/librdkafka-*.so*")
    kafka = ctypes.CDLL(str(library))
    kafka.rd_kafka_conf_new.restype = kafka.rd_kafka_new.restype = ctypes.c_void_p
    why = ctypes.create_string_buffer(512)
    conf = ctypes.c_void_p(kafka.rd_kafka_conf_new())
    for setting, to in ((b"bootstrap.servers", servers.encode()), (b"log_level", b"0")):
        assert kafka.rd_kafka_conf_set(conf, setting, to, why, 512) == 0, why.value
    producer = ctypes.c_void_p(kafka.rd_kafka_new(0, conf, why, 512))
    value, size = ctypes.c_char_p(b"{}"), ctypes.c_size_t(2)
    header = (ctypes.c_char_p(name), ctypes.c_char_p(b"v"), ctypes.c_ssize_t(1))
    parts = (_TOPIC, ctypes.c_char_p(topic.encode()), _VALUE, value, size, _HEADER, *header, _END)
    for _ in range(count):
        assert kafka.rd_kafka_producev(producer, *parts) == 0
    assert kafka.rd_kafka_flush(producer, 20_000) == 0
    kafka.rd_kafka_destroy(producer)


def main() -> None:
    """Print how a feed reads 200 such records: enough calls for Python to specialise the code."""
    broker = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0})  # the mock
    address = next(iter(broker.list_topics(timeout=10).brokers.values()))
    servers = f"{address.host}:{address.port}"
    produce_raw_headers(servers, "users", b"ce_\xff\xfe", 200)
    partitions = broker.list_topics("users", 10).topics["users"].partitions
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "log_level": 0})
    consumer.assign([TopicPartition("users", partition, 0) for partition in partitions])
    want = FeedKey("p", "old", "t1", "users", "main", "earliest")
    found: list[FeedRecord] = []
    while len(found) < 200:
        found += [record_of(message, want) for message in consumer.consume(200, 1)]
    consumer.close()
    print(len(found), {(event.body, tuple(event.headers), dropped) for event, dropped in found})  # noqa: T201 (its result)


if __name__ == "__main__":
    main()
