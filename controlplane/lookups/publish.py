"""One tick: publish rows and tables to the look-up topic, in the order of their versions, each with a delivery report.

Safe to kill at any point: rows above a table's stored versions are sent again, and readers keep the highest version.
"""

import time
from collections.abc import Iterable
from typing import Any, Final

import structlog
from confluent_kafka import KafkaException
from django.db.models import F

from controlplane.kafka import KeyedRecord, RecordNotStoredError, kafka_clients
from controlplane.locks import TaskWaitingError, alone
from controlplane.topics import TopicCreator, TopicsNotReadyError
from dataplane.names import LOOKUP_TOPIC
from dataplane.tables.lookups import TableRecord, encode_row, encode_table, row_key, table_key
from mgmt.models import LookupRow, LookupTable

LOCK: Final = "lookups.publish"
CHUNK: Final = 10_000
TICK_S: Final = 4.0  # the next tick publishes the rest
FLUSH_S: Final = 10.0
CHECK_S: Final = 10.0  # interval of the check that the topic was not recreated
log = structlog.get_logger(__name__)


class LookupPublisher:
    """Publisher of changed rows and tables. Its state in memory may be lost at any time."""

    def __init__(self, kafka: str) -> None:
        self._clients = kafka_clients(kafka)
        self._topics = TopicCreator(kafka)
        self._check_at = 0.0

    def tick(self) -> str:
        """Publish due rows and tables under the lock; return a summary of the work done."""
        return alone(LOCK, self._run)

    def _run(self) -> str:
        if time.monotonic() < self._check_at and not _due().exists():
            return ""
        try:
            return self._publish(time.monotonic() + TICK_S)
        except (KafkaException, TopicsNotReadyError, RecordNotStoredError) as exc:
            log.warning("look-up tables not published", reason=str(exc))
            raise TaskWaitingError("waiting for Kafka") from exc

    def _check_topic(self) -> str:
        """Mark all tables to be sent again if the topic was recreated; return Kafka's id of the topic, "" for none."""
        found = self._topics.find([LOOKUP_TOPIC]).get(LOOKUP_TOPIC)
        if found is None:
            return ""
        others = LookupTable.objects.exclude(published_to=found.topic_id)
        others.update(published_to=found.topic_id, sent_version=0, published_version=0)
        return found.topic_id

    def _publish(self, deadline: float) -> str:
        if not self._check_topic():
            raise TaskWaitingError("waiting for the topic")
        self._check_at = time.monotonic() + CHECK_S
        sent = 0
        for table in _due().order_by("changed_at", "id"):
            sent += self._publish_table(table, deadline)
            if time.monotonic() > deadline:
                break
        return f"{sent} rows" if sent else ""

    def _publish_table(self, table: LookupTable, deadline: float) -> int:
        """Publish the rows, then the table, so that a reader with the table's record has its rows.

        A row that is overwritten meanwhile gets a version above `table.version` and is missing below it. So after the
        rows up to `table.version`, those up to the version that the table has by then are sent, too.
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
        """Send the rows up to a version, and maybe more; return how many, and True if all up to it are sent."""
        sent = 0
        while table.sent_version < upto:
            sent += self._send_chunk(table, upto)
            if time.monotonic() > deadline:
                break
        return sent, table.sent_version >= upto

    def _send_chunk(self, table: LookupTable, upto: int) -> int:
        """Send the next rows; return how many. Fewer than CHUNK means that none up to `upto` is left."""
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
        """Publish the table's record, so that no reader sees it lose rows one by one, then tombstones of the rows."""
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
        """Produce records in their order. Raises RecordNotStoredError unless every delivery report is a success."""
        self._clients.store("lookups", LOOKUP_TOPIC, records, timeout_s=FLUSH_S, linger_ms=5)


def _due() -> Any:
    return LookupTable.objects.filter(version__gt=F("published_version"))


def _version_now(table: LookupTable) -> int:
    return int(LookupTable.objects.values_list("version", flat=True).get(id=table.id))


def _record(table: LookupTable, state: Any) -> TableRecord:
    return TableRecord(table.id, table.version, table.tenant_id, table.name, state)
