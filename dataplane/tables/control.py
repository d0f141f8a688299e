"""The control topic held as a local table: every record by key, the highest version of each.

A snapshot on disk, shared by the processes of a host, lets a process start while Kafka or the whole control plane is
away. Reading is `refresh()`: no thread of its own, so a batch sees one state from beginning to end.
"""

import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from msgspec import Struct

from dataplane.names import CONTROL_TOPIC
from dataplane.tables.optional_files import OptionalFiles
from dataplane.tables.records import (
    KINDS,
    CellRecord,
    DestinationRecord,
    KeyRecord,
    PipeRecord,
    PlanRecord,
    QuotaRecord,
    Record,
    SchemaRecord,
    StopRecord,
    decode_record,
    encode_record,
    record_key,
)

MAX_SNAPSHOT_AGE_S: Final = 12 * 3600
SNAPSHOT_EVERY_S: Final = 5.0
SNAPSHOT: Final = "the snapshot of the control table"
_R = TypeVar("_R", bound=Record)


class Snapshot(Struct, frozen=True):
    """The table on disk: its records, the control topic's next offset, and when it was written (Unix seconds).

    kinds: those that its writer understood; it read past all others
    """

    offset: int
    written_s: float
    records: list[Record]
    kinds: list[str] = []


class ControlTable:
    """What this process knows of the control topic. `offset` is the next one to apply; `changes` grows with each."""

    def __init__(self) -> None:
        self.offset = 0
        self.changes = 0
        self._records: dict[str, Record] = {}
        self._listeners: list[Callable[[Record], None]] = []

    def on_change(self, listener: Callable[[Record], None]) -> None:
        """Call `listener` with every record already here, and with each that takes the place of an older one."""
        self._listeners.append(listener)
        for record in self._records.values():
            listener(record)

    def apply(self, record: Record) -> bool:
        """Keep the record if its version is higher than what is known. Returns whether it was kept."""
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
        """What a cell should be."""
        return self._get(f"cell/{cell}", CellRecord)

    def pipe(self, pipe: str) -> PipeRecord | None:
        """A pipe's state and weights."""
        return self._get(f"pipe/{pipe}", PipeRecord)

    def plan(self, pipe: str, revision: int) -> PlanRecord | None:
        """The spec of a revision."""
        return self._get(f"plan/{pipe}@{revision}", PlanRecord)

    def key(self, digest: str) -> KeyRecord | None:
        """An API key by its digest."""
        return self._get(f"key/{digest}", KeyRecord)

    def schema(self, pipe: str, source: str) -> SchemaRecord | None:
        """What events of a source must fit; None if they may be anything."""
        return self._get(f"schema/{pipe}/{source}", SchemaRecord)

    def destination(self, pipe: str, name: str) -> DestinationRecord | None:
        """How to reach a destination now."""
        return self._get(f"destination/{pipe}/{name}", DestinationRecord)

    def quota(self, tenant: str) -> QuotaRecord | None:
        """The tenant's own limits; None if it has the defaults."""
        return self._get(f"quota/{tenant}", QuotaRecord)

    def stop(self, cell: str) -> StopRecord | None:
        """The last incarnation of a cell's application that was asked to end."""
        return self._get(f"stop/{cell}", StopRecord)

    def _get(self, key: str, kind: type[_R]) -> _R | None:
        record = self._records.get(key)
        return record if isinstance(record, kind) else None

    def save(self, path: Path) -> None:
        """Write the snapshot so that a reader sees the old or the new one, never half of it. Raises OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        snapshot = Snapshot(self.offset, time.time(), list(self._records.values()), KINDS)
        scratch = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            scratch.write_bytes(msgspec.json.encode(snapshot))
            scratch.replace(path)
        except OSError:
            scratch.unlink(missing_ok=True)  # half of it fills the disk as well
            raise

    def load(self, path: Path) -> float:
        """Take a snapshot over. Returns its age in seconds, or -1 if there is none. Raises OSError.

        One of a release that read past kinds which this one knows is older than any: all must be read anew.
        """
        try:
            snapshot = msgspec.json.decode(path.read_bytes(), type=Snapshot)
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
        """Load the snapshot, if any, and begin to read where it ends (anew if it is too old). Needs no broker yet."""
        self.table = ControlTable()
        self._snapshot = snapshot
        self._files = files or OptionalFiles()
        self._saved_at = time.monotonic()
        self._saved_changes = 0
        age_s = -1.0
        with self._files.attempt(SNAPSHOT):
            age_s = self.table.load(snapshot) if snapshot else -1.0
        self._consumer = Consumer(
            {
                "bootstrap.servers": kafka,
                "group.id": "penstock-control-reader",  # the client wants a name; nothing is ever committed
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",  # behind the log start, or the topic was made anew: read it all
                "fetch.wait.max.ms": 1_000,
                "enable.partition.eof": True,
            }
        )
        fresh = 0 <= age_s < MAX_SNAPSHOT_AGE_S
        start = self.table.offset if fresh else OFFSET_BEGINNING
        self._consumer.assign([TopicPartition(CONTROL_TOPIC, 0, start)])
        self.at_end = False

    def refresh(self, limit: int = 1_000) -> int:
        """Apply what has arrived, without waiting. Returns how many records were applied.

        A broker that is away is no error: the table stays as it is.
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
        """Refresh until the end of the topic, for start-up. Returns False if the time is over before that."""
        deadline = time.monotonic() + timeout_s
        while not self.at_end and time.monotonic() < deadline:
            self.refresh()
            time.sleep(0.01)
        return self.at_end

    def close(self) -> None:
        """Write the snapshot and leave."""
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
            return False  # from a newer release: N reads past what only N+1 knows

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
    """Where a host's snapshot lies."""
    return var / "data" / "control.json"


def encode_for_topic(record: Record) -> tuple[bytes, bytes]:
    """Key and value of a record in the control topic."""
    return record_key(record).encode(), encode_record(record)
