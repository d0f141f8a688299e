"""Kafka clients of tests: in a run with a secured Kafka they sign in as the administrator.

Code of Penstock in the test process, and its processes, sign in as their role instead: see localbox.testing_kafka.
"""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from localbox.testing_kafka import administrator


def admin_consumer(settings: Mapping[str, Any]) -> Consumer:
    """Return a consumer with these settings and `bootstrap.servers`."""
    return Consumer({**settings, **administrator()})


def admin_producer(settings: Mapping[str, Any]) -> Producer:
    """Return a producer."""
    return Producer({**settings, **administrator()})


def broker_admin(servers: str, **more: Any) -> AdminClient:
    """Return an admin client."""
    return AdminClient({"bootstrap.servers": servers, **more, **administrator()})
