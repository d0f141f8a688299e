"""The one place that makes librdkafka clients of Penstock's own Kafka: each gets the settings of security.

Kafka clusters of customers (dataplane.spec.clusters) have settings of their own and never get these.
"""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from dataplane.kafka_settings import kafka_settings

Settings = Mapping[str, Any]  # of one client, with `bootstrap.servers`


def make_producer(settings: Settings, security: Mapping[str, str] | None = None) -> Producer:
    """Return a producer. Raises KafkaSettingsError, and KafkaException for settings that librdkafka refuses.

    security: settings of another principal or cluster than the process's own
    """
    return Producer({**settings, **(kafka_settings() if security is None else security)})


def make_consumer(settings: Settings, security: Mapping[str, str] | None = None) -> Consumer:
    """Return a consumer. Arguments and errors as for `make_producer`."""
    return Consumer({**settings, **(kafka_settings() if security is None else security)})


def make_offset_client(kafka: str, group: str) -> Consumer:
    """Return a client for the committed offsets of a group, and for those of topics. Raises as `make_producer`.

    It joins no group, reads no records and commits only what it is asked to.
    """
    return make_consumer({"bootstrap.servers": kafka, "group.id": group, "enable.auto.commit": False, "log_level": 3})


def make_admin_client(settings: Settings, security: Mapping[str, str] | None = None) -> AdminClient:
    """Return an admin client. Arguments and errors as for `make_producer`."""
    return AdminClient({**settings, **(kafka_settings() if security is None else security)})
