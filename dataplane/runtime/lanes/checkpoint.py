"""Checkpoint: freeze facts and prefixes, store them in the audit topic, then commit exactly the frozen prefixes."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord, OffsetMark
from dataplane.ledger.facts import FactBook
from dataplane.ledger.fields import FieldObservation
from dataplane.ledger.report_parts import encode_parts
from dataplane.ledger.usage import UsageReport
from dataplane.names import AUDIT_TOPIC
from dataplane.record_limits import REPORT_BYTES
from dataplane.runtime.lanes.slots import PartitionSlots
from dataplane.runtime.lanes.window import AckWindow
from dataplane.runtime.producers.tracked_producer import TrackedProducer
from dataplane.runtime.telemetry.lags import LagBook

LATE_S: Final = 5.0  # a checkpoint not stored within this is reported, and nothing more is read until it is stored


class FrozenCheckpoint:
    """Checkpoint in flight: the audit records to be stored, in order, and the prefixes to commit after the last one."""

    def __init__(self, prefixes: dict[int, int], records: Sequence[bytes] = ()) -> None:
        self.prefixes = prefixes
        self.records = deque(records)


class CommitPrefixes:
    """Frozen, pending and committed prefixes by slot: the pure half of the checkpoint.

    Several checkpoints may be pending, in the order in which they were frozen: one in flight, and the final one of a
    revocation behind it.
    """

    def __init__(self) -> None:
        self._committed: dict[int, int] = {}
        self.pending: deque[FrozenCheckpoint] = deque()

    def moved(self, windows: Mapping[int, AckWindow]) -> dict[int, int]:
        """Return the prefixes that differ from those committed last."""
        prefixes = {partition: window.prefix for partition, window in windows.items()}
        return {p: offset for p, offset in prefixes.items() if self._committed.get(p) != offset}

    def freeze(self, prefixes: dict[int, int], records: Sequence[bytes] = ()) -> FrozenCheckpoint:
        """Begin a checkpoint with these audit records."""
        frozen = FrozenCheckpoint(prefixes, records)
        self.pending.append(frozen)
        return frozen

    def audited(self, frozen: FrozenCheckpoint) -> dict[int, int]:
        """Return the prefixes to commit, now that all audit records of the checkpoint are stored."""
        if frozen in self.pending:
            self.pending.remove(frozen)
        return frozen.prefixes

    def committed(self, prefixes: Mapping[int, int]) -> None:
        """Record that a commit of these was sent; `commit_failed` reverts it."""
        self._committed.update(prefixes)

    def commit_failed(self, partitions: Iterable[int]) -> None:
        """Let the next checkpoint commit these again, because a commit failed."""
        for partition in partitions:
            self._committed.pop(partition, None)

    def forget(self, partition: int) -> None:
        """Remove a partition that another lane owns now from every pending checkpoint.

        None of them may commit it any more, even if it is assigned to this lane again meanwhile: another owner may have
        committed more, with a note of its own, and the commit would go backwards.
        """
        self._committed.pop(partition, None)
        for frozen in self.pending:
            frozen.prefixes.pop(partition, None)


class Checkpointer:
    """Checkpoints of one lane. One audit record is in flight at a time: the next is sent when it is stored.

    The records of a writer are therefore stored in order, even while a topic rejects records, and the last record of a
    checkpoint, which reports the settled offsets, follows every fact below them.

    run: random id of this start of the lane; with the sequence number it identifies repeats of an audit record
    """

    def __init__(
        self,
        *,
        cell: str,
        writer: str,
        kind: str,
        run: str,
        slots: PartitionSlots,
        consumer: Consumer,
        outbox: TrackedProducer,
        report_bytes: int = REPORT_BYTES,
    ) -> None:
        self._about = (AUDIT_VERSION, cell, writer, kind)
        self._run = run
        self._slots = slots
        self._consumer = consumer
        self._outbox = outbox
        self._prefixes = CommitPrefixes()
        self._sequence = 0
        self._report_bytes = report_bytes
        self._is_sending = False
        self._stored_s = time.monotonic()  # when an audit record was last stored, or none was due
        self.begun = self.stored = 0  # checkpoints begun, and those of them that are stored
        self.floors: dict[tuple[str, int], int] = {}  # low watermarks of topics that nobody reads: reported as inputs
        self.note: Callable[[int, int], str] | None = None  # returns the metadata to commit with a slot's offset

    @property
    def busy(self) -> bool:
        """True while a checkpoint is in flight."""
        return bool(self._prefixes.pending)

    @property
    def late_s(self) -> float:
        """Seconds for which no audit record of a pending checkpoint was stored, if more than LATE_S; otherwise 0."""
        waited_s = time.monotonic() - self._stored_s if self.busy else 0.0
        return waited_s if waited_s > LATE_S else 0.0

    def freeze(
        self,
        windows: Mapping[int, AckWindow],
        facts: FactBook,
        lags: LagBook,
        usage: UsageReport | None,
        fields: list[FieldObservation],
    ) -> None:
        """Begin a checkpoint of everything settled so far, and clear `facts` and `lags`, which it contains."""
        moved = self._prefixes.moved(windows)
        if not (moved or len(facts) or len(lags) or usage or fields):
            return
        inputs = [OffsetMark(*self._slots.place(slot), window.prefix) for slot, window in windows.items()]
        inputs += [OffsetMark(*place, offset) for place, offset in self.floors.items()]
        audit = AuditRecord(
            *self._about,
            at_us=time.time_ns() // 1_000,
            inputs=inputs,
            outputs=self._outbox.marks(),
            facts=facts.sets(),
            lags=lags.sketches(),
            usage=usage,
            fields=fields,
            run=self._run,
            sequence=self._sequence + 1,
        )
        records = encode_parts(audit, self._report_bytes)
        if not self.busy:
            self._stored_s = time.monotonic()
        self._prefixes.freeze(moved, records)
        self._sequence += len(records)
        self.begun += 1
        self._send()
        facts.clear()
        lags.clear()

    def _send(self) -> None:
        """Produce the next audit record, if none is in flight. The producer returns its token when it is stored."""
        if self.busy and not self._is_sending:
            frozen = self._prefixes.pending[0]
            self._outbox.send(AUDIT_TOPIC, frozen, key=self._about[1].encode(), value=frozen.records[0])
            self._is_sending = True

    def audited(self, frozen: FrozenCheckpoint, *, wait: bool = False) -> None:
        """Send the next audit record, now that one is stored; after its last one, commit the checkpoint first."""
        self._is_sending = False
        self._stored_s = time.monotonic()
        frozen.records.popleft()
        if not frozen.records:
            self.stored += 1
            self._commit(self._prefixes.audited(frozen), wait=wait)
        self._send()

    def _commit(self, ours: Mapping[int, int], *, wait: bool) -> None:
        """Commit the offsets of a checkpoint, for the partitions that the lane still owns.

        A commit that fails (during a rebalance, or without a coordinator) is dropped: the next one covers it, or the
        new owner reads the messages again.
        """
        if not ours:
            return
        offsets = [self._place(slot, offset) for slot, offset in ours.items()]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=not wait)
        except KafkaException:
            return
        self._prefixes.committed(ours)

    def _place(self, slot: int, offset: int) -> TopicPartition:
        return self._slots.at(slot, offset, self.note(slot, offset) if self.note else "")

    def commit_failed(self, partitions: Iterable[int]) -> None:
        """Let the next checkpoint commit these again, because an asynchronous commit failed."""
        self._prefixes.commit_failed(partitions)

    def forget(self, partition: int) -> None:
        """Remove a partition that another lane owns now from every pending checkpoint."""
        self._prefixes.forget(partition)
