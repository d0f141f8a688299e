"""Local table of the control topic: every record by key, the highest version of each.

A snapshot on disk, shared by the processes of a host, lets a process start while Kafka or the whole control plane is
down. `refresh()` reads the topic without a thread, so that a batch sees one state from beginning to end.
"""

import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition
from msgspec import Struct

from dataplane.kafka_clients import make_consumer
from dataplane.names import CONTROL_TOPIC
from dataplane.tables.optional_files import OptionalFiles
from dataplane.tables.records import (
    KINDS,
    ApiKeyRecord,
    CellRecord,
    DestinationRecord,
    EventTypesRecord,
    PipeRecord,
    PlanRecord,
    QuotaRecord,
    Record,
    SchemaRecord,
    StopRecord,
    SubjectRecord,
    WebhookRecord,
    api_key_key,
    cell_key,
    decode_record,
    destination_key,
    event_types_key,
    pipe_key,
    plan_key,
    quota_key,
    record_key,
    schema_key,
    stop_key,
    subject_key,
    webhook_key,
)

MAX_SNAPSHOT_AGE_S: Final = 12 * 3600
SNAPSHOT_EVERY_S: Final = 5.0
SNAPSHOT: Final = "the snapshot of the control table"
_R = TypeVar("_R", bound=Record)


class TableSnapshot(Struct, frozen=True):
    """The table on disk: its records, the control topic's next offset, and when it was written (Unix seconds).

    kinds: kinds of records that its writer knew; it skipped all others
    """

    offset: int
    written_s: float
    records: list[Record]
    kinds: list[str] = []


class ControlTable:
    """Records of the control topic. `offset`: next offset to apply; `changes`: number of applied records."""

    def __init__(self) -> None:
        self.offset = 0
        self.changes = 0
        self._records: dict[str, Record] = {}
        self._listeners: list[Callable[[Record], None]] = []

    def on_change(self, listener: Callable[[Record], None]) -> None:
        """Call `listener` with every record of the table now, and later with each new or newer one."""
        self._listeners.append(listener)
        for record in self._records.values():
            listener(record)

    def apply(self, record: Record) -> bool:
        """Store the record if its version is higher than the stored one. Returns True if it was stored."""
        key = record_key(record)
        known = self._records.get(key)
        if known is not None and known.version >= record.version:
            return False
        self._records[key] = record
        self.changes += 1
        for listener in self._listeners:
            listener(record)
        return True

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records.values())

    def __len__(self) -> int:
        return len(self._records)

    def cell(self, cell: str) -> CellRecord | None:
        """Return the record of a cell; None if there is none."""
        return self._get(cell_key(cell), CellRecord)

    def pipe(self, pipe: str) -> PipeRecord | None:
        """Return the record of a pipe; None if there is none."""
        return self._get(pipe_key(pipe), PipeRecord)

    def plan(self, pipe: str, revision: int) -> PlanRecord | None:
        """Return the plan record of a revision; None if there is none."""
        return self._get(plan_key(pipe, revision), PlanRecord)

    def key(self, digest: str) -> ApiKeyRecord | None:
        """Return the record of an API key by its digest; None if there is none."""
        return self._get(api_key_key(digest), ApiKeyRecord)

    def schema(self, pipe: str, source: str) -> SchemaRecord | None:
        """Return the schema of a source; None if its events are not checked."""
        return self._get(schema_key(pipe, source), SchemaRecord)

    def subject(self, tenant: str, subject: str) -> SubjectRecord | None:
        """Return a tenant's subject of the schema registry; None if no source uses it."""
        return self._get(subject_key(tenant, subject), SubjectRecord)

    def event_types(self, pipe: str, source: str) -> EventTypesRecord | None:
        """Return the event types of a source; None if it has none."""
        return self._get(event_types_key(pipe, source), EventTypesRecord)

    def webhook(self, pipe: str, source: str) -> WebhookRecord | None:
        """Return the webhook settings of a source; None if it has no URL of its own."""
        return self._get(webhook_key(pipe, source), WebhookRecord)

    def destination(self, pipe: str, name: str) -> DestinationRecord | None:
        """Return the current record of a destination; None if there is none."""
        return self._get(destination_key(pipe, name), DestinationRecord)

    def quota(self, tenant: str) -> QuotaRecord | None:
        """Return the tenant's own limits; None if it has the defaults."""
        return self._get(quota_key(tenant), QuotaRecord)

    def stop(self, cell: str) -> StopRecord | None:
        """Return the last request that an incarnation of the cell's application drain; None if there is none."""
        return self._get(stop_key(cell), StopRecord)

    def _get(self, key: str, kind: type[_R]) -> _R | None:
        record = self._records.get(key)
        return record if isinstance(record, kind) else None

    def save(self, path: Path) -> None:
        """Write the snapshot atomically: a reader sees the old or the new one. Raises OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        snapshot = TableSnapshot(self.offset, time.time(), list(self._records.values()), KINDS)
        scratch = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            scratch.write_bytes(msgspec.json.encode(snapshot))
            scratch.replace(path)
        except OSError:
            scratch.unlink(missing_ok=True)  # do not leave a partial file on a full disk
            raise

    def load(self, path: Path) -> float:
        """Load a snapshot. Returns its age in seconds, or -1 if there is none. Raises OSError.

        The age is infinite if the writing release skipped kinds that this one knows: the topic must be read again.
        """
        try:
            snapshot = msgspec.json.decode(path.read_bytes(), type=TableSnapshot)
        except (FileNotFoundError, msgspec.DecodeError):
            return -1.0
        for record in snapshot.records:
            self.apply(record)
        self.offset = snapshot.offset
        if not set(KINDS) <= set(snapshot.kinds):
            return math.inf
        return max(0.0, time.time() - snapshot.written_s)


class ControlReader:
    """Keeps a ControlTable up to date from Kafka. One per process, used from one thread."""

    def __init__(self, kafka: str, snapshot: Path | None = None, files: OptionalFiles | None = None) -> None:
        """Load the snapshot, if any, and seek to its offset (to the beginning if too old). Needs no broker yet."""
        self.table = ControlTable()
        self._snapshot = snapshot
        self._files = files or OptionalFiles()
        self._saved_at = time.monotonic()
        self._saved_changes = 0
        age_s = -1.0
        with self._files.attempt(SNAPSHOT):
            age_s = self.table.load(snapshot) if snapshot else -1.0
        self._consumer = make_consumer(
            {
                "bootstrap.servers": kafka,
                "group.id": "penstock-control-reader",  # required by the client; no offset is ever committed
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",  # offset out of range, or the topic was recreated: read it all
                "fetch.wait.max.ms": 1_000,
                "enable.partition.eof": True,
            }
        )
        fresh = 0 <= age_s < MAX_SNAPSHOT_AGE_S
        start = self.table.offset if fresh else OFFSET_BEGINNING
        self._consumer.assign([TopicPartition(CONTROL_TOPIC, 0, start)])
        self.at_end = False

    def refresh(self, limit: int = 1_000) -> int:
        """Apply the records that have arrived, without blocking. Returns how many records were applied.

        An unreachable broker is not an error: the table stays unchanged.
        """
        applied = 0
        for message in self._consumer.consume(limit, 0):
            error = message.error()
            if error is None:
                applied += self._take(message.offset(), message.value())
            elif error.code() == KafkaError._PARTITION_EOF:
                self.at_end = True
                self.table.offset = max(self.table.offset, message.offset())
        self._save_if_due()
        return applied

    def catch_up(self, timeout_s: float) -> bool:
        """Refresh until all current records are applied, for start-up. Returns False after `timeout_s`.

        The high watermark is queried, because the client reports the end of the partition only after the broker has
        waited for more records (`fetch.wait.max.ms`).
        """
        deadline, start = time.monotonic() + timeout_s, self.table.offset
        try:
            _, end = self._consumer.get_watermark_offsets(TopicPartition(CONTROL_TOPIC, 0), timeout=timeout_s)
        except KafkaException:
            return False
        while not (self.at_end or start <= end <= self.table.offset):
            if time.monotonic() > deadline:
                return False
            self.refresh()
            time.sleep(0.01)
        return True

    def close(self) -> None:
        """Write the snapshot and close the consumer."""
        self._save()
        try:
            self._consumer.close()
        except KafkaException as exc:
            if exc.args[0].code() != KafkaError._STATE:
                raise

    def _take(self, offset: int, value: bytes | None) -> bool:
        self.table.offset = max(self.table.offset, offset + 1)
        if value is None:
            return False
        try:
            return self.table.apply(decode_record(value))
        except msgspec.DecodeError:
            return False  # from a newer release: release N skips records that only N+1 knows

    def _save_if_due(self) -> None:
        if time.monotonic() - self._saved_at >= SNAPSHOT_EVERY_S:
            self._saved_at = time.monotonic()
            self._save()

    def _save(self) -> None:
        if self._snapshot is None or self.table.changes == self._saved_changes:
            return
        with self._files.attempt(SNAPSHOT):
            self.table.save(self._snapshot)
            self._saved_changes = self.table.changes


def snapshot_path(var: Path) -> Path:
    """Return the path of a host's snapshot."""
    return var / "data" / "control.json"
