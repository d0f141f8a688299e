"""One tick: bring rows and tables to the look-up topic, in the order of their versions, each with its own report.

Safe to be killed anywhere: what a table's marks do not cover is sent again, and readers keep the highest version.
"""

import time
from collections.abc import Iterable
from typing import Any, Final

import structlog
from confluent_kafka import KafkaException
from django.db.models import F

from controlplane.kafka import KeyedRecord, NotStoredError, kafka_clients
from controlplane.locks import alone
from controlplane.topics import TopicAdmin, TopicsNotReadyError
from dataplane.names import LOOKUP_TOPIC
from dataplane.tables.lookups import TableRecord, encode_row, encode_table, row_key, table_key
from mgmt.models import LookupRow, LookupTable

LOCK: Final = "lookups.publish"
CHUNK: Final = 10_000
TICK_S: Final = 4.0  # what is left after it is for the next tick
FLUSH_S: Final = 10.0
CHECK_S: Final = 10.0  # how often it looks whether the topic is still the same
log = structlog.get_logger(__name__)


class LookupPublisher:
    """Sends rows and tables that changed. It remembers nothing that may not be lost at any time."""

    def __init__(self, kafka: str) -> None:
        self._clients = kafka_clients(kafka)
        self._topics = TopicAdmin(kafka)
        self._check_at = 0.0

    def tick(self) -> str:
        """Publish what is due, under the lock. Returns what was done, in words."""
        return alone(LOCK, self._run)

    def _run(self) -> str:
        if time.monotonic() < self._check_at and not _due().exists():
            return "nothing to do"
        try:
            return self._publish(time.monotonic() + TICK_S)
        except (KafkaException, TopicsNotReadyError, NotStoredError) as exc:
            log.warning("look-up tables wait for Kafka", reason=str(exc))
            return "waiting for Kafka"

    def _check_topic(self) -> str:
        """Have everything sent again to a topic that was made anew. Returns Kafka's id of the topic, "" for none."""
        found = self._topics.find([LOOKUP_TOPIC]).get(LOOKUP_TOPIC)
        if found is None:
            return ""
        others = LookupTable.objects.exclude(published_to=found.topic_id)
        others.update(published_to=found.topic_id, sent_version=0, published_version=0)
        return found.topic_id

    def _publish(self, deadline: float) -> str:
        if not self._check_topic():
            return "waiting for the topic"
        self._check_at = time.monotonic() + CHECK_S
        sent = 0
        for table in _due().order_by("changed_at", "id"):
            sent += self._publish_table(table, deadline)
            if time.monotonic() > deadline:
                break
        return f"{sent} rows"

    def _publish_table(self, table: LookupTable, deadline: float) -> int:
        """Rows first, then the table: who holds its record holds its rows.

        A row that is overwritten while this runs has left the versions below `table.version`; it is sent all the same,
        because rows are sent up to the version that the table has once those below are through.
        """
        if table.state == LookupTable.State.REMOVED:
            return self._publish_removal(table, deadline)
        sent, done = self._send_rows(table, table.version, deadline)
        if done:
            more, done = self._send_rows(table, _version_now(table), deadline)
            sent += more
        if not done:
            return sent
        self._store([(table_key(table.id), encode_table(_record(table, "live")))])
        LookupTable.objects.filter(id=table.id).update(published_version=table.version)
        return sent

    def _send_rows(self, table: LookupTable, upto: int, deadline: float) -> tuple[int, bool]:
        """Rows up to a version, and some more: how many, and whether those up to it are all sent."""
        sent = 0
        while table.sent_version < upto:
            sent += self._send_chunk(table, upto)
            if time.monotonic() > deadline:
                break
        return sent, table.sent_version >= upto

    def _send_chunk(self, table: LookupTable, upto: int) -> int:
        """The next rows. Fewer than a chunk are all there are, so nothing up to `upto` is left."""
        rows = LookupRow.objects.filter(table=table, version__gt=table.sent_version).order_by("version")
        chunk = list(rows.values_list("key", "version", "row")[:CHUNK])
        self._store(
            (row_key(table.id, key), encode_row(version, None if row is None else row.encode()))
            for key, version, row in chunk
        )
        last = chunk[-1][1] if chunk else 0
        table.sent_version = last if len(chunk) == CHUNK else max(upto, last)
        LookupTable.objects.filter(id=table.id).update(sent_version=table.sent_version)
        return len(chunk)

    def _publish_removal(self, table: LookupTable, deadline: float) -> int:
        """The table's record first, so that nobody sees it lose rows one by one; tombstones then clear the topic."""
        self._store([(table_key(table.id), encode_table(_record(table, "removed")))])
        sent = 0
        while keys := list(LookupRow.objects.filter(table=table).values_list("id", "key")[:CHUNK]):
            self._store((row_key(table.id, key), None) for _, key in keys)
            LookupRow.objects.filter(id__in=[id_ for id_, _ in keys]).delete()
            sent += len(keys)
            if time.monotonic() > deadline:
                return sent
        LookupTable.objects.filter(id=table.id).update(published_version=table.version)
        return sent

    def _store(self, records: Iterable[KeyedRecord]) -> None:
        """Produce records in their order. Raises NotStoredError unless each one's delivery report is good."""
        self._clients.store("lookups", LOOKUP_TOPIC, records, timeout_s=FLUSH_S, linger_ms=5)


def _due() -> Any:
    return LookupTable.objects.filter(version__gt=F("published_version"))


def _version_now(table: LookupTable) -> int:
    return int(LookupTable.objects.values_list("version", flat=True).get(id=table.id))


def _record(table: LookupTable, state: Any) -> TableRecord:
    return TableRecord(table.id, table.version, table.tenant_id, table.name, state)
