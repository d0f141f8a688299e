"""Replicator of look-up tables: one process per host reads the topic into the local store, all others read the store.

Every process that uses look-up tables has this thread; a file lock elects the one that writes. When its holder exits,
the lock is released and the next one continues from the offset in the store. Without Kafka the store stays unchanged.
Once a second the replicator compares its position with the end of the topic; the time of the last such comparison at
which the store had every record is the age of this host's copy. Then it also repeats rows of which compaction would
keep an older version.
"""

import fcntl
import logging
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from dataplane.kafka_clients import make_admin_client, make_consumer, make_producer
from dataplane.names import LOOKUP_TOPIC
from dataplane.tables.lookup_store import LOOKUPS, LookupsFullError, LookupStore
from dataplane.tables.optional_files import OptionalFiles

log = logging.getLogger(__name__)

ELECT_S: Final = 0.5  # interval at which the other processes try to get the lock
CONFIRM_S: Final = 1.0  # interval at which the holder asks for the end of the topic
CHECK_S: Final = 10.0  # interval at which the holder checks that the topic was not recreated
FULL_S: Final = 30.0  # interval of retries while the store is full
MOST_REPEATED: Final = 1_000  # rows that are repeated after a confirmation
_ENDS: Final = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._FATAL)
READ: Final = 10_000  # records in one transaction
REQUEST_S: Final = 2.0


class TopicMissingError(Exception):
    """The topic does not exist, or was recreated since reading began."""


class LookupReplicator:
    """Thread from `start` to `close` that writes the store while it holds the lock."""

    def __init__(self, kafka: str, store: LookupStore, folder: Path, files: OptionalFiles | None = None) -> None:
        self._kafka, self._store = kafka, store
        self._files = files or OptionalFiles()
        self._lock_path = folder / "keeper.lock"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lookup-keeper", daemon=True)
        self._reported = ""
        self._next_offset = 0
        # One client is kept: its requests refer to it, so that only the garbage collector would free it.
        self._admin: AdminClient | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop the thread and release the lock."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            with self._files.attempt(LOOKUPS):
                self._replicate_if_elected()
            self._ended.wait(ELECT_S)

    def _replicate_if_elected(self) -> None:
        """Write the store until the end, if this process gets the lock. Raises OSError if the disk fails."""
        handle = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._keep()
        except BlockingIOError:
            return
        finally:
            os.close(handle)

    def _keep(self) -> None:
        """Read while the process holds the lock, with a pause after any error except those of the disk."""
        log.info("replicating look-up tables from offset %s", self._store.position().offset)
        self._recount()
        while not self._ended.is_set():
            pause_s = 1.0
            try:
                self._read()
            except LookupsFullError as exc:
                log.error("look-up tables are not updated: %s", exc)
                pause_s = FULL_S
            except (KafkaException, TopicMissingError) as exc:
                self._report(f"look-up tables are not updated, waiting for Kafka: {exc}")
            self._ended.wait(pause_s)

    def _recount(self) -> None:
        """Compute the figures of the tables, if the last writer did not."""
        try:
            self._store.recount()
        except LookupsFullError as exc:
            log.error("the rows of look-up tables are not counted: %s", exc)

    def _report(self, problem: str) -> None:
        """Log a problem once, not at every retry."""
        if problem != self._reported:
            log.warning(problem)
            self._reported = problem

    def _read(self) -> None:
        """Read until an error. Raises KafkaException, TopicMissingError, LookupsFullError."""
        consumer, asker = self._open(), make_consumer(_settings(self._kafka))
        check_at = time.monotonic() + CHECK_S
        confirm_at = 0.0
        try:
            while not self._ended.is_set():
                self._store_all(consumer.consume(READ, 0.2))
                if time.monotonic() >= confirm_at:
                    self._confirm(asker)
                    confirm_at = time.monotonic() + CONFIRM_S
                if time.monotonic() >= check_at:
                    self._store.forget_dead_readers()
                    if self._topic_id() != self._store.position().topic_id:
                        raise TopicMissingError("the topic was recreated")
                    check_at = time.monotonic() + CHECK_S
        finally:
            asker.close()
            consumer.close()

    def _open(self) -> Consumer:
        topic_id, position = self._topic_id(), self._store.position()
        if topic_id != position.topic_id:
            if position.topic_id:
                log.warning("the topic of look-up tables was recreated: reading it from its beginning")
            self._store.begin_topic(topic_id)
        self._next_offset = self._store.index_changes().offset
        consumer = make_consumer(_settings(self._kafka))
        consumer.assign([TopicPartition(LOOKUP_TOPIC, 0, self._next_offset)])
        self._reported = ""
        return consumer

    def _confirm(self, asker: Consumer) -> None:
        """Note the time if the store has all records of the topic. Raises OSError.

        Kafka is asked, since its client does not say how old its own knowledge of the topic's end is. `asker` has a
        connection of its own: on the consumer's the question would wait for the fetch in progress, which an idle topic
        answers after `fetch.wait.max.ms`.
        """
        asked_us = time.time_ns() // 1_000
        try:
            _, end = asker.get_watermark_offsets(TopicPartition(LOOKUP_TOPIC, 0), timeout=REQUEST_S, cached=False)
        except KafkaException as exc:
            log.debug("the end of the topic of look-up tables is not known: %s", exc)
            return
        if self._next_offset >= end:
            self._store.confirm(asked_us)
            self._repeat_late_rows()

    def _repeat_late_rows(self) -> None:
        """Write the current version of rows whose last record is a late one to the topic, of which compaction keeps it.

        A host that reads the compacted topic would otherwise have the older row. Every host does so: its record is a
        repeat to the others. What Kafka does not accept is written again after the next confirmation.
        """
        rows = self._store.late_rows(MOST_REPEATED)
        if not rows:
            return
        producer = make_producer(_common(self._kafka) | {"acks": "all"})
        for key, value in rows:
            producer.produce(LOOKUP_TOPIC, value, key, partition=0)
        if left := producer.flush(REQUEST_S):
            producer.purge()
            log.warning("look-up tables: %s rows after late records are not repeated yet", left)

    def _topic_id(self) -> str:
        """Return Kafka's id of the topic. Raises KafkaException, TopicMissingError."""
        if self._admin is None:
            self._admin = make_admin_client(_common(self._kafka))
        self._admin.poll(0)  # serve the client's events: nothing else empties their queue
        wanted = TopicCollection([LOOKUP_TOPIC])
        described = self._admin.describe_topics(wanted, request_timeout=REQUEST_S)[LOOKUP_TOPIC]
        try:
            return str(_answered(described).topic_id)
        except KafkaException as exc:
            if exc.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise TopicMissingError("the topic does not exist yet") from exc
            raise

    def _store_all(self, messages: Sequence[Message]) -> None:
        records, offsets, next_offset, position = [], list[int](), -1, self._next_offset
        for message in messages:
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:  # the end, also if compaction removed the last records
                    position = message.offset()
                    continue
                if error.code() in _ENDS:
                    raise KafkaException(error)
                log.warning("look-up tables: %s", error.str())
                continue
            position = next_offset = message.offset() + 1  # lower than before, if the consumer began again
            if message.value() is not None:  # a tombstone only removes a deleted table's records from the topic
                records.append((message.key() or b"", message.value()))
                offsets.append(message.offset())
        if next_offset >= 0:
            self._store.apply(records, next_offset, offsets)
        self._next_offset = position


def _answered(request: Future[Any]) -> Any:
    """Return the result of a request. Raises KafkaException."""
    try:
        return request.result(timeout=REQUEST_S + 0.5)
    except TimeoutError as exc:  # an OSError, which is taken for an error of the disk
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from exc


def _common(kafka: str) -> dict[str, Any]:
    return {"bootstrap.servers": kafka, "reconnect.backoff.max.ms": 1_000, "log_level": 0}


def _settings(kafka: str) -> dict[str, Any]:
    return _common(kafka) | {
        "group.id": "penstock-lookup-keeper",  # required by the client; nothing is ever committed
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "earliest",  # out of range: read everything again, row versions prevent older values
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 1_000,
    }
