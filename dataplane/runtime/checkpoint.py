"""The checkpoint: freeze facts and prefixes, store them in the audit topic, then commit exactly the frozen prefixes."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from dataplane.ledger.audit import AUDIT_VERSION, Audit, Mark
from dataplane.ledger.facts import FactBook
from dataplane.ledger.fields import FieldSample
from dataplane.ledger.report_parts import encode_parts
from dataplane.ledger.usage import Usage
from dataplane.names import AUDIT_TOPIC
from dataplane.record_limits import REPORT_BYTES
from dataplane.runtime.lags import LagBook
from dataplane.runtime.outbox import Outbox
from dataplane.runtime.slots import Slots
from dataplane.runtime.window import AckWindow

LATE_S: Final = 5.0  # a checkpoint that is not stored by then is reported, and nothing more is read until it is


class Frozen:
    """A checkpoint on its way: the audit records still to be stored, in order, and what to commit after the last."""

    def __init__(self, prefixes: dict[int, int], records: Sequence[bytes] = ()) -> None:
        self.prefixes = prefixes
        self.records = deque(records)


class Prefixes:
    """The pure half: what is frozen, what may be committed, what is, by slot.

    Several checkpoints may be pending, in the order in which they were frozen: one under way, and the final one of a
    revocation behind it.
    """

    def __init__(self) -> None:
        self._committed: dict[int, int] = {}
        self.pending: deque[Frozen] = deque()

    def moved(self, windows: Mapping[int, AckWindow]) -> dict[int, int]:
        """Return the prefixes that are not what was committed last."""
        prefixes = {partition: window.prefix for partition, window in windows.items()}
        return {p: offset for p, offset in prefixes.items() if self._committed.get(p) != offset}

    def freeze(self, prefixes: dict[int, int], records: Sequence[bytes] = ()) -> Frozen:
        """Begin a checkpoint with these audit records."""
        frozen = Frozen(prefixes, records)
        self.pending.append(frozen)
        return frozen

    def audited(self, frozen: Frozen) -> dict[int, int]:
        """Return what to commit, now that all audit records of the checkpoint are stored."""
        if frozen in self.pending:
            self.pending.remove(frozen)
        return frozen.prefixes

    def committed(self, prefixes: Mapping[int, int]) -> None:
        """Note that a commit of these is on its way; `commit_failed` takes it back."""
        self._committed.update(prefixes)

    def commit_failed(self, partitions: Iterable[int]) -> None:
        """Have the next checkpoint commit these again: a commit failed."""
        for partition in partitions:
            self._committed.pop(partition, None)

    def forget(self, partition: int) -> None:
        """Strip a partition that another lane owns now from every pending checkpoint.

        None of them may commit it any more, not even if it comes back to us in the meantime: its new owner may have
        committed more, with a note of its own, and the commit would go backwards.
        """
        self._committed.pop(partition, None)
        for frozen in self.pending:
            frozen.prefixes.pop(partition, None)


class Checkpointer:
    """One lane's checkpoints. One audit record is under way at a time: the next is sent when it is stored.

    So the records of a writer are stored in their order, whatever a topic refuses meanwhile, and the last record of a
    checkpoint, which says what is settled, comes after every fact below.

    run: names this start of the lane; with it and a sequence number each record is told from a repeat of itself
    """

    def __init__(
        self,
        *,
        cell: str,
        writer: str,
        kind: str,
        run: str,
        slots: Slots,
        consumer: Consumer,
        outbox: Outbox,
        report_bytes: int = REPORT_BYTES,
    ) -> None:
        self._about = (AUDIT_VERSION, cell, writer, kind)
        self._run = run
        self._slots = slots
        self._consumer = consumer
        self._outbox = outbox
        self._prefixes = Prefixes()
        self._sequence = 0
        self._report_bytes = report_bytes
        self._is_sending = False
        self._stored_s = time.monotonic()  # when an audit record was stored last, or none was due
        self.begun = self.stored = 0  # checkpoints begun, and how many of them the ledger has
        self.floors: dict[tuple[str, int], int] = {}  # where topics begin that nobody reads: told as passed
        self.note: Callable[[int, int], str] | None = None  # what to commit beside the offset of a slot, if anything

    @property
    def busy(self) -> bool:
        """True while a checkpoint is under way."""
        return bool(self._prefixes.pending)

    @property
    def late_s(self) -> float:
        """For how many seconds the ledger has stored nothing, once that is too long; 0 before."""
        waited_s = time.monotonic() - self._stored_s if self.busy else 0.0
        return waited_s if waited_s > LATE_S else 0.0

    def freeze(
        self,
        windows: Mapping[int, AckWindow],
        facts: FactBook,
        lags: LagBook,
        usage: Usage | None,
        fields: list[FieldSample],
    ) -> None:
        """Begin a checkpoint of everything settled so far, and empty the books once it has their content."""
        moved = self._prefixes.moved(windows)
        if not (moved or len(facts) or len(lags) or usage or fields):
            return
        inputs = [Mark(*self._slots.place(slot), window.prefix) for slot, window in windows.items()]
        inputs += [Mark(*place, offset) for place, offset in self.floors.items()]
        audit = Audit(
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
        """Produce the next audit record, if none is under way. Its token comes back through the outbox."""
        if self.busy and not self._is_sending:
            frozen = self._prefixes.pending[0]
            self._outbox.send(AUDIT_TOPIC, frozen, key=self._about[1].encode(), value=frozen.records[0])
            self._is_sending = True

    def audited(self, frozen: Frozen, *, wait: bool = False) -> None:
        """Send the next audit record, now that one is stored; after the last one of the checkpoint, commit it first."""
        self._is_sending = False
        self._stored_s = time.monotonic()
        frozen.records.popleft()
        if not frozen.records:
            self.stored += 1
            self._commit(self._prefixes.audited(frozen), wait=wait)
        self._send()

    def _commit(self, ours: Mapping[int, int], *, wait: bool) -> None:
        """Commit what a checkpoint covers, for the partitions that are still ours.

        A commit that fails (a rebalance is under way, the coordinator is away) is dropped: the next one covers it, or
        the new owner reads the messages again.
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
        """Have the next checkpoint commit these again: an asynchronous commit failed."""
        self._prefixes.commit_failed(partitions)

    def forget(self, partition: int) -> None:
        """Strip a partition that another lane owns now from every pending checkpoint."""
        self._prefixes.forget(partition)
