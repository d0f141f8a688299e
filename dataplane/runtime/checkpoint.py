"""The checkpoint: freeze facts and prefix, have the audit acknowledged, then commit exactly the frozen prefix."""

import time
from collections.abc import Callable, Iterable, Mapping

from confluent_kafka import Consumer, KafkaException, TopicPartition

from dataplane.ledger.audit import AUDIT_VERSION, Audit, FactSet, LagSet, Mark, encode
from dataplane.ledger.fields import FieldSample
from dataplane.ledger.usage import Usage
from dataplane.names import AUDIT_TOPIC
from dataplane.runtime.outbox import Outbox
from dataplane.runtime.slots import Slots
from dataplane.runtime.window import AckWindow


class Frozen:
    """A checkpoint on its way: what will be committed once the ledger has what lies below."""

    def __init__(self, prefixes: dict[int, int]) -> None:
        self.prefixes = prefixes


class Prefixes:
    """The pure half: what is frozen, what may be committed, what is, by slot. At most one checkpoint is under way."""

    def __init__(self) -> None:
        self._committed: dict[int, int] = {}
        self._pending: Frozen | None = None

    @property
    def busy(self) -> bool:
        """Whether a checkpoint is under way."""
        return self._pending is not None

    def moved(self, windows: Mapping[int, AckWindow]) -> dict[int, int]:
        """The prefixes that are not what was committed last."""
        prefixes = {partition: window.prefix for partition, window in windows.items()}
        return {p: offset for p, offset in prefixes.items() if self._committed.get(p) != offset}

    def freeze(self, prefixes: dict[int, int]) -> Frozen:
        """Begin a checkpoint: its audit record goes out now."""
        self._pending = Frozen(prefixes)
        return self._pending

    def audited(self, frozen: Frozen) -> dict[int, int]:
        """The audit record is stored: what to commit now."""
        if frozen is self._pending:
            self._pending = None
        return frozen.prefixes

    def committed(self, prefixes: Mapping[int, int]) -> None:
        """A commit of these is on its way; `commit_failed` takes it back."""
        self._committed.update(prefixes)

    def commit_failed(self, partitions: Iterable[int]) -> None:
        """A commit did not take: the next checkpoint commits these again."""
        for partition in partitions:
            self._committed.pop(partition, None)

    def forget(self, partition: int) -> None:
        """The partition is somebody else's now.

        A checkpoint under way must not commit it any more, not even if it comes back to us in the meantime: its new
        owner may have committed more, and the commit would go backwards.
        """
        self._committed.pop(partition, None)
        if self._pending is not None:
            self._pending.prefixes.pop(partition, None)


class Checkpointer:
    """One lane's checkpoints; at most one is under way. A failed one is covered by the next."""

    def __init__(self, *, cell: str, writer: str, kind: str, slots: Slots, consumer: Consumer, outbox: Outbox) -> None:
        self._about = (AUDIT_VERSION, cell, writer, kind)
        self._slots = slots
        self._consumer = consumer
        self._outbox = outbox
        self._prefixes = Prefixes()
        self.begun = self.stored = 0  # audit records sent, and how many of them are stored
        self.floors: dict[tuple[str, int], int] = {}  # where topics begin that nobody reads: told as passed
        self.note: Callable[[int, int], str] | None = None  # what to commit beside the offset of a slot, if anything

    @property
    def busy(self) -> bool:
        """Whether one is under way."""
        return self._prefixes.busy

    def freeze(
        self,
        windows: Mapping[int, AckWindow],
        facts: list[FactSet],
        lags: list[LagSet],
        usage: Usage | None,
        fields: list[FieldSample],
    ) -> None:
        """Produce the audit record for everything settled so far. Its token comes back through the outbox."""
        moved = self._prefixes.moved(windows)
        if not (moved or facts or lags or usage or fields):
            return
        inputs = [Mark(*self._slots.place(slot), window.prefix) for slot, window in windows.items()]
        inputs += [Mark(*place, offset) for place, offset in self.floors.items()]
        audit = Audit(*self._about, time.time_ns() // 1_000, inputs, self._outbox.marks(), facts, lags, usage, fields)
        frozen = self._prefixes.freeze(moved)
        self.begun += 1
        self._outbox.send(AUDIT_TOPIC, frozen, key=self._about[1].encode(), value=encode(audit))

    def audited(self, frozen: Frozen, *, wait: bool = False) -> None:
        """The audit record is stored: commit what it covers, for the partitions that are still ours.

        A commit that fails (a rebalance is under way, the coordinator is away) is dropped: the next one covers it, or
        the new owner reads the messages again.
        """
        self.stored += 1
        ours = self._prefixes.audited(frozen)
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
        """An asynchronous commit did not take: the next checkpoint commits these again."""
        self._prefixes.commit_failed(partitions)

    def forget(self, partition: int) -> None:
        """The partition is somebody else's now."""
        self._prefixes.forget(partition)
