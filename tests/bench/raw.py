"""Raw baselines: the rates of the bare clients on this machine, without Penstock."""

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pycurl
from confluent_kafka import Consumer, Producer, TopicPartition

from loadgen.measured import EVENT

SAFE = {"acks": "all", "enable.idempotence": True, "linger.ms": 1, "compression.type": "lz4", "log_level": 3}


def produce(kafka: str, topic: str, count: int) -> float:
    """Produce with acks=all, idempotence and every delivery report counted; return records per second."""
    producer = Producer({"bootstrap.servers": kafka, "queue.buffering.max.messages": 100_000, **SAFE})
    stored = 0

    def report(error: Any, _message: Any) -> None:
        nonlocal stored
        assert error is None
        stored += 1

    begun = time.perf_counter()
    for _ in range(count):
        _retried_when_full(producer, partial(producer.produce, topic, EVENT, on_delivery=report))
        producer.poll(0)
    producer.flush(30)
    assert stored == count
    return count / (time.perf_counter() - begun)


def consume_produce(kafka: str, source: str, target: str, count: int, partitions: int) -> float:
    """Consume, produce the same key, value and headers with acks=all, commit; return records per second."""
    config = {"bootstrap.servers": kafka, "group.id": "bench-raw", "enable.auto.commit": False, "log_level": 3}
    consumer = Consumer({**config, "fetch.wait.max.ms": 100, "queued.min.messages": 10_000})
    producer = Producer({"bootstrap.servers": kafka, "queue.buffering.max.messages": 100_000, **SAFE})
    consumer.assign([TopicPartition(source, partition, 0) for partition in range(partitions)])
    stored = seen = 0

    def report(error: Any, _message: Any) -> None:
        nonlocal stored
        assert error is None
        stored += 1

    begun = 0.0
    while seen < count:
        messages = consumer.consume(2_000, 0.2)
        begun = begun or time.perf_counter()
        for m in messages:
            record = {"value": m.value(), "key": m.key(), "headers": m.headers()}
            _retried_when_full(producer, partial(producer.produce, target, on_delivery=report, **record))
        seen += len(messages)
        producer.poll(0)
    producer.flush(30)
    consumer.commit(asynchronous=False)
    seconds = time.perf_counter() - begun
    consumer.close()
    return stored / seconds


def post(url: str, count: int, parallel: int = 64) -> float:
    """POST the event with a content type over reused libcurl handles; return requests per second."""
    multi = pycurl.CurlMulti()
    free = [_handle(url) for _ in range(parallel)]
    begun = time.perf_counter()
    started = ended = 0
    while ended < count:
        while free and started < count:
            multi.add_handle(free.pop())
            started += 1
        multi.perform()
        _, well, failed = multi.info_read()
        assert not failed
        for curl in well:
            multi.remove_handle(curl)
            free.append(curl)
        ended += len(well)
        if not well:
            multi.select(0.002)
    return count / (time.perf_counter() - begun)


def _handle(url: str) -> Any:
    curl = pycurl.Curl()
    curl.setopt(pycurl.URL, url)
    curl.setopt(pycurl.POSTFIELDS, EVENT)
    curl.setopt(pycurl.HTTPHEADER, ["Content-Type: application/json", "Expect:", "webhook-id: " + "0" * 36])
    curl.setopt(pycurl.WRITEFUNCTION, lambda _data: None)
    curl.setopt(pycurl.NOSIGNAL, 1)
    return curl


def _retried_when_full(producer: Producer, step: Callable[[], None]) -> None:
    while True:
        try:
            return step()
        except BufferError:
            producer.poll(0.01)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["produce", "consume-produce", "post"])
    parser.add_argument("words", nargs="+")
    arguments = parser.parse_args()
    words = arguments.words
    match arguments.what:
        case "produce":
            result = produce(words[0], words[1], int(words[2]))
        case "consume-produce":
            result = consume_produce(words[0], words[1], words[2], int(words[3]), int(words[4]))
        case _:
            result = post(words[0], int(words[1]))
    print(result)  # noqa: T201 (the answer to the process that asked)
