"""A control record counts as published when its own report says so, and not because a flush came to its end."""

from typing import Any

import pytest

from controlplane.control_topic import ControlTopic, ControlTopicError
from dataplane.tables.records import StopRecord


class Silent:
    """A producer whose broker is away: nothing is reported, everything is still queued when the flush ends."""

    def __init__(self) -> None:
        self.queued = 0

    def produce(self, *_record: Any, **_more: Any) -> None:
        self.queued += 1

    def poll(self, _wait_s: float) -> None:
        """Nothing comes."""

    def flush(self, _wait_s: float) -> int:
        return self.queued

    def purge(self) -> None:
        self.queued = 0


def test_what_is_still_queued_when_the_flush_ends_is_not_published():
    topic = ControlTopic("127.0.0.1:1")
    topic._producer = silent = Silent()
    with pytest.raises(ControlTopicError, match="1 of 1 records not stored"):
        topic.publish([StopRecord("c1", 1, "run-1")])
    assert silent.queued == 0, "what it still held would come too late"
