"""Clients of a secured Kafka that sign in as one of the box's users, or as a tenant."""

import contextlib
import json
import time
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic


class SignedIn:
    """Clients that share settings of security."""

    def __init__(self, servers: str, security: dict[str, str]) -> None:
        self.security = security
        self._settings: dict[str, Any] = {"bootstrap.servers": servers, "log_level": 0, **security}

    def make_topic(self, name: str) -> None:
        admin = AdminClient(self._settings)
        for future in admin.create_topics([NewTopic(name, 1, 1)]).values():
            future.result()

    def topics(self) -> set[str]:
        """Return the topics that the user may see."""
        return set(AdminClient(self._settings).list_topics(timeout=20).topics)

    def write(self, topic: str, values: Iterable[bytes] = (b"x",)) -> str:
        """Produce; return the name of the first error, "" if all was stored."""
        errors: list[str] = []
        producer = Producer(self._settings | {"message.timeout.ms": 20_000})
        for value in values:
            producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error.name()) if error else None)
        producer.flush(30)
        return next(iter(errors), "")

    def read(self, topic: str, group: str, limit_s: float = 20.0) -> str:
        """Read the first record of partition 0; return the name of the error, "" if there was none."""
        with self.consumer(group) as consumer:
            error = consumer.list_topics(topic, timeout=limit_s).topics[topic].error
            if error is not None:  # a consumer with an assigned partition would wait for the topic forever
                return str(error.name())
            consumer.assign([TopicPartition(topic, 0, 0)])
            return _first(consumer, limit_s)

    def follow(self, topic: str, group: str, limit_s: float = 40.0) -> str:
        """Join a group and read a record; return the name of the error, "" if there was none."""
        with self.consumer(group) as consumer:
            consumer.subscribe([topic])
            return _first(consumer, limit_s)

    def consumer(self, group: str, **more: Any) -> Consumer:
        settings = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        return Consumer(self._settings | settings | more)

    def refused(self, limit_s: float = 20.0) -> str:
        """Return the reason why the user cannot sign in, "" if it can."""
        seen: list[KafkaError] = []
        client = AdminClient(self._settings | {"error_cb": seen.append})
        until = time.monotonic() + limit_s
        while time.monotonic() < until:
            client.poll(0.1)
            reasons = [error.str() for error in seen if error.code() != KafkaError._ALL_BROKERS_DOWN]
            if reasons:
                return "; ".join(reasons)
            with contextlib.suppress(KafkaException):
                if client.list_topics(timeout=0.5).brokers:
                    return ""
        return "no answer"


def _first(consumer: Consumer, limit_s: float) -> str:
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        message: Message | None = consumer.poll(0.2)
        if message is not None:
            error = message.error()
            return str(error.name()) if error else ""
    return "nothing arrived"


def settings_in(text: str) -> dict[str, str]:
    """Return the settings in the text of a file of the box."""
    found: dict[str, str] = json.loads(text)
    return found
