"""Offsets at which an Observer starts to read, from the rows that the one before it stored."""

from collections.abc import Iterable

import pytest

from controlplane.locks import unlock_all
from controlplane.observer.main import ObserverSession
from controlplane.observer.metrics import ObserverMetrics
from controlplane.observer.reader import AuditReader
from controlplane.settings import control_settings
from dataplane.names import AUDIT_TOPIC, PartitionKey
from mgmt.models import AuditOffset

LOW, HIGH, STORED = 3, 9, 50


class ShortLogs(AuditReader):
    """Reader of logs that end before the stored offsets. `started`: the offset at which each partition is read."""

    def __init__(self, topics: list[str]) -> None:
        self.places: set[PartitionKey] = {("read", 0)}  # so that the session does not ask a cluster for a promotion
        self.started: dict[str, int] = {}
        self._topics = topics

    def partitions_of(self, _topics: Iterable[str]) -> list[PartitionKey]:
        return [(topic, 0) for topic in self._topics]

    def bounds(self, _place: PartitionKey) -> tuple[int, int]:
        return LOW, HIGH

    def start(self, place: PartitionKey, offset: int) -> None:
        self.started[place[0]] = offset


@pytest.mark.parametrize("purpose", ["held", "dead", "attempts"])
def test_stored_offset_past_the_end_reads_no_message_a_second_time(db: None, purpose: str):
    """A held message that was released would be held, and released, again."""
    topic = f"penstock.c1.{purpose}.g1"
    assert first_read(topic) == HIGH


@pytest.mark.parametrize("topic", [AUDIT_TOPIC, "penstock.c1.signals.g1"])
def test_stored_offset_past_the_end_reads_reports_and_signals_from_the_beginning(db: None, topic: str):
    """Facts are sets and the newest signal counts, so that a second reading changes nothing."""
    assert first_read(topic) == LOW


def first_read(topic: str) -> int:
    AuditOffset.objects.create(topic=topic, partition=0, next_offset=STORED)
    reader = ShortLogs([topic])
    session = ObserverSession(control_settings(), ObserverMetrics(), reader)
    session.discover()
    unlock_all()
    assert AuditOffset.objects.get(topic=topic).next_offset == reader.started[topic]
    return reader.started[topic]
