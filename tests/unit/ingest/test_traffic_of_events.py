"""Events are counted by the schema version that each was checked with."""

import errno
import json
from typing import Any

import pytest

from dataplane.tables.records import (
    EventTypesRecord,
)
from tests.support.event_types import (
    ORDER_1,
    confluent,
    container,
    event_types,
)
from tests.support.typed_ingest import TYPED, Opened, fed


def test_events_are_counted_by_the_version_that_each_was_checked_with(opened: Opened):
    ingest = opened(TYPED)
    lines = [
        b'{"type":"order","id":1}',
        b'{"type":"order","id":2}',
        b'{"type":"order","id":"a"}',
        b'{"type":"refund","refund":1}',
        b'{"type":"invoice"}',
        b"{",
    ]
    assert ingest.post(b"\n".join(lines), "application/x-ndjson").status == 207
    assert ingest.post(confluent(7, ORDER_1, {"id": 5}), "avro/binary").status == 202
    assert ingest.post(confluent(7, ORDER_1, {"id": 5})[:-1], "avro/binary").status == 422
    assert ingest.post(b'{"type":"order","id":"b"}').status == 422
    assert ingest.traffic() == {
        ("shop", "orders@1"): (1, 1),
        ("shop", "orders@2"): (2, 2),
        ("shop", "refunds@1"): (1, 0),
    }
    assert ingest.traffic() == {}, "each event is reported once"


def test_events_of_a_container_and_of_a_kafka_source_are_counted(opened: Opened):
    ingest = opened(event_types(""), EventTypesRecord("p", "old", 1, "", {"": "orders"}))
    assert ingest.post(container(ORDER_1, {"id": 1}, {"id": 2}), "avro/binary").status == 202
    values: list[Any] = [{"id": 1}, {"id": "a"}, {"id": 2}, {"id": 3}]
    assert ingest.feed(*(fed(json.dumps(value).encode(), value) for value in values)) == [202] * 4
    assert ingest.traffic() == {("old", "orders@2"): (3, 1), ("shop", "orders@1"): (2, 0)}


def test_events_that_are_not_acked_and_events_without_a_version_are_not_counted(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
):
    ingest = opened(event_types(""))

    def no_room(_acks: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(ingest.replica._journal, "write", no_room)
        assert ingest.post(b'{"id":1}').status == 503
    assert ingest.traffic() == {}
    ingest.replica.table.apply(EventTypesRecord("p", "shop", 3, "", {}))
    assert ingest.post(b'{"id":1}').status == 202
    assert ingest.traffic() == {}
