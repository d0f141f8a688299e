"""Batch of records that the Observer has read and not yet stored: bounded, and dropped as a whole if storing fails."""

from typing import Any, Final

import msgspec
import structlog
from msgspec import Struct, field

from controlplane.observer.attempts import SuccessSampler
from controlplane.observer.ledger_entries import LedgerEntries, purpose_of
from controlplane.observer.merge import MergedRecords
from controlplane.observer.runs import ReportRuns, is_repeat, run_of
from dataplane.ledger.audit import AuditRecord, decode_attempts, decode_audit
from dataplane.ledger.heartbeat import HeartbeatRecord, decode_heartbeat
from dataplane.names import AUDIT_TOPIC, HEARTBEAT_TOPIC, PartitionKey
from mgmt.models import DeliveryAttempt as AttemptRow

MOST_RECORDS: Final = 2_000
MOST_BYTES: Final = 16 * 1024 * 1024
log = structlog.get_logger(__name__)


class AuditBatch(Struct):
    """Merged content of the records read since the last store.

    moves:   by topic partition, the offset after the last record in the batch
    known:   audit records that were counted before this batch
    counted: audit records that this batch counts
    """

    sampler: SuccessSampler
    known: ReportRuns = field(default_factory=dict)
    counted: ReportRuns = field(default_factory=dict)
    tally: MergedRecords = field(default_factory=MergedRecords)
    attempts: list[AttemptRow] = field(default_factory=list)
    ends: LedgerEntries = field(default_factory=LedgerEntries)
    heartbeats: dict[tuple[str, str], HeartbeatRecord] = field(default_factory=dict)
    moves: dict[PartitionKey, int] = field(default_factory=dict)
    records: int = 0
    size: int = 0

    def add(self, message: Any) -> None:
        """Add one record. A record that cannot be decoded is logged and skipped: it must not stop the others."""
        topic, partition, value = message.topic(), message.partition(), message.value()
        self.records += 1
        self.size += len(value or b"")
        try:
            self._add(topic, partition, value, message)
        except (msgspec.DecodeError, ValueError, TypeError, KeyError) as exc:
            log.error(
                "record cannot be decoded", topic=topic, partition=partition, offset=message.offset(), error=str(exc)
            )
        if topic != HEARTBEAT_TOPIC:
            self.moves[topic, partition] = message.offset() + 1

    def _add_audit(self, audit: AuditRecord, partition: int) -> None:
        run = run_of(audit, partition)
        before = self.counted.get(run, self.known.get(run, 0))
        self.tally.add(audit, partition, is_repeat=is_repeat(audit, before))
        if audit.run:
            self.counted[run] = max(before, audit.sequence)

    @property
    def is_full(self) -> bool:
        """Return True if the batch must be stored before more is read."""
        return self.records >= MOST_RECORDS or self.size >= MOST_BYTES

    def _add(self, topic: str, partition: int, value: bytes, message: Any) -> None:
        if topic == AUDIT_TOPIC:
            self._add_audit(decode_audit(value), partition)
        elif topic == HEARTBEAT_TOPIC:
            heartbeat = decode_heartbeat(value)
            self.heartbeats[heartbeat.cell, heartbeat.writer] = heartbeat
        elif (purpose := purpose_of(topic)) == "attempts":
            self.attempts += self.sampler.rows(decode_attempts(value))
        else:
            self.ends.add(purpose, message)
