"""Confirmation of a host's look-up tables: only when every record of the topic, as of the question, has been read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from dataplane.runtime.lookup_replicator import LookupReplicator
from dataplane.tables.lookup_store import LookupStore
from dataplane.tables.lookups import encode_row, row_key


class Topic:
    """Stand-in for the client that is asked for the end of the topic; None: Kafka does not answer."""

    def __init__(self, end: int | None) -> None:
        self.end = end

    def get_watermark_offsets(self, _partition: TopicPartition, **_: Any) -> tuple[int, int]:
        if self.end is None:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return 0, self.end


class Record:
    """Stand-in for a record, or for the event of the partition's end at an offset."""

    def __init__(self, offset: int, *, is_end: bool = False) -> None:
        self._offset, self._is_end = offset, is_end

    def error(self) -> KafkaError | None:
        return KafkaError(KafkaError._PARTITION_EOF) if self._is_end else None

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return row_key("tab_1", f"k{self._offset}")

    def value(self) -> bytes:
        return encode_row(1, b"{}")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LookupStore]:
    store = LookupStore(tmp_path)
    yield store
    store.close()


@pytest.fixture
def replicator(store: LookupStore, tmp_path: Path) -> LookupReplicator:
    return LookupReplicator("nowhere", store, tmp_path)


def read(replicator: LookupReplicator, *records: Record) -> None:
    replicator._store_all(list(records))


def ask(replicator: LookupReplicator, end: int | None) -> None:
    replicator._confirm(cast("Consumer", Topic(end)))


def test_copy_is_confirmed_once_it_has_all_records(store: LookupStore, replicator: LookupReplicator):
    read(replicator, Record(0), Record(1))
    ask(replicator, 3)
    assert store.confirmed_us() is None
    read(replicator, Record(2))
    ask(replicator, 3)
    assert store.confirmed_us() is not None


def test_empty_topic_is_confirmed(store: LookupStore, replicator: LookupReplicator):
    ask(replicator, 0)
    assert store.confirmed_us() is not None


def test_copy_is_not_confirmed_while_kafka_does_not_answer(store: LookupStore, replicator: LookupReplicator):
    read(replicator, Record(0))
    ask(replicator, None)
    assert store.confirmed_us() is None


def test_records_that_compaction_removed_at_the_end_do_not_prevent_a_confirmation(
    store: LookupStore, replicator: LookupReplicator
):
    read(replicator, Record(0), Record(9, is_end=True))
    ask(replicator, 9)
    assert store.confirmed_us() is not None
    assert store.position().offset == 1, "reading continues after the last stored record"


def test_copy_is_not_confirmed_while_it_is_read_again_from_the_beginning(
    store: LookupStore, replicator: LookupReplicator
):
    read(replicator, *map(Record, range(5)), Record(5, is_end=True))
    read(replicator, Record(0), Record(1))  # the topic lost its end, so the client began again
    ask(replicator, 4)
    assert store.confirmed_us() is None
    read(replicator, Record(2), Record(3))
    ask(replicator, 4)
    assert store.confirmed_us() is not None


def test_end_event_before_newer_records_of_a_batch_is_not_the_position(
    store: LookupStore, replicator: LookupReplicator
):
    read(replicator, Record(0), Record(1, is_end=True), Record(1))
    ask(replicator, 2)
    assert store.confirmed_us() is not None
