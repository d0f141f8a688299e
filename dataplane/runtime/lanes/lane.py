"""Lane loop, shared by all kinds of lanes: poll, process, settle by delivery report, checkpoint, drain.

One thread owns everything here. A `LaneWork` defines how one kind of lane processes messages; the loop does not know.
"""

import logging
import os
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from dataplane.ledger.facts import FactBook
from dataplane.ledger.meta import Headers, MessageMeta
from dataplane.names import INPUTS_OF, lane_group
from dataplane.runtime.freed_memory import FreedMemory
from dataplane.runtime.kafka import SESSION_TIMEOUT_MS, lane_consumer, lane_producer, leave_group
from dataplane.runtime.lanes.checkpoint import Checkpointer, FrozenCheckpoint
from dataplane.runtime.lanes.context import BUSY_WAIT_S, LaneContext, LaneError, LaneIdentity, LaneWork
from dataplane.runtime.lanes.envelopes import EnvelopeReader, UnreadableEnvelope
from dataplane.runtime.lanes.partitions import AssignedPartitions
from dataplane.runtime.lanes.poison import PoisonTracker
from dataplane.runtime.lanes.rebalance import Rebalance
from dataplane.runtime.lanes.slots import PartitionSlots
from dataplane.runtime.lanes.watchdog import Watchdog
from dataplane.runtime.producers.tracked_producer import ProducerFencedError, TrackedProducer
from dataplane.runtime.settings import DataPlaneSettings
from dataplane.runtime.telemetry.fields import FieldBook
from dataplane.runtime.telemetry.heartbeat import HeartbeatSender
from dataplane.runtime.telemetry.lags import LagBook
from dataplane.runtime.telemetry.message_tally import MessageTally
from dataplane.runtime.telemetry.tracing import Tracing
from dataplane.runtime.telemetry.usage import UsageBook
from dataplane.tables.control import ControlReader, ControlTable, snapshot_path
from dataplane.tables.optional_files import OptionalFiles
from dataplane.tables.records import CellRecord

log = logging.getLogger(__name__)

BATCH: Final = 500  # small enough that derived objects stay in the CPU cache: 2 000 cost a fifth more
CATCH_UP_S: Final = 5.0
CONTROL_EVERY_S: Final = 0.1
DRAIN_S: Final = 25.0
REVOKE_S: Final = 5.0
CALLBACK_S: Final = 2 * REVOKE_S + 1  # a callback waits for work and for a checkpoint, REVOKE_S each
ALONE_S: Final = 1.0  # how long a message that is processed alone is watched for a crash
_OWN_ERRORS: Final = (LaneError, ProducerFencedError, KafkaException, OSError)  # not caused by a message


class Lane:
    """One lane from start to drain. Its work uses it as a `LaneContext`."""

    def __init__(
        self,
        identity: LaneIdentity,
        settings: DataPlaneSettings,
        make_work: Callable[[LaneContext], LaneWork],
        tracing: Tracing | None = None,
    ) -> None:
        """Open the lane. The caller closes `tracing`. Raises LaneError if the cell has no control record."""
        self.identity = identity
        self.settings = settings
        self.tracing = tracing
        self.usage = UsageBook()
        self.fields = FieldBook(settings.fields)
        self.files = OptionalFiles()
        self.held_pipes = 0  # pipes that the work holds because a resource is missing on this host
        self._reader = ControlReader(settings.kafka, snapshot_path(settings.var), self.files)
        self.table: ControlTable = self._reader.table
        self.cell = self._await_cell()
        self.slots = PartitionSlots([self.cell.topics[purpose].name for purpose in INPUTS_OF[identity.kind]])
        name = f"{identity.cell}-{identity.writer}"
        self._producer = lane_producer(settings.kafka, name)
        self.producer = TrackedProducer(self._producer)
        self.facts = FactBook()
        self.tally = MessageTally()
        self.lags = LagBook()
        group = lane_group(identity.cell, identity.kind)
        # An application's lane is the same member after a crash; another application's lanes must never fence it.
        instance = f"{name}-{identity.incarnation}"
        self._consumer: Consumer = lane_consumer(settings.kafka, group, name, self._committed, instance=instance)
        self._checkpointer = Checkpointer(
            cell=identity.cell,
            writer=identity.writer,
            kind=identity.kind,
            run=os.urandom(8).hex(),
            slots=self.slots,
            consumer=self._consumer,
            outbox=self.producer,
        )
        self._pulse = HeartbeatSender(
            self._producer,
            cell=identity.cell,
            writer=identity.writer,
            kind=identity.kind,
            epoch=identity.epoch,
            incarnation=identity.incarnation,
        )
        self._crashes = PoisonTracker(settings.var / "data" / "crashes", self.files)
        self._watchdog = Watchdog()
        self._memory = FreedMemory()
        self._partitions = AssignedPartitions(
            identity.writer,
            self.slots,
            self._consumer,
            self._crashes,
            pat=self._watchdog.pat,
            max_unsettled=settings.max_unsettled,
        )
        self.windows = self._partitions.windows
        self._rebalance = Rebalance(
            identity.writer,
            self.slots,
            self._partitions,
            self._crashes,
            stop_work=lambda slots: self._work.on_revoked(slots),  # noqa: PLW0108 - the work is created last
            finish_work=lambda: self._settle_within(REVOKE_S),
            forget=self._checkpointer.forget,
        )
        self._envelopes = EnvelopeReader(self.slots, self.producer, self.cell.topics["dead"].name)
        self._last_poll = time.monotonic()
        self._busy_s = 0.0  # in callbacks, at the last poll
        self._must_leave = ""
        self._control_due = self._checkpoint_due = 0.0
        self._work = make_work(self)

    # -- LaneContext -----------------------------------------------------------------------------------------------

    def settle(self, slot: int, offset: int) -> None:
        """Settle a message; ignored for a partition that the lane no longer owns."""
        window = self.windows.get(slot)
        if window is not None:
            window.settle(offset)

    def settle_all(self, slot: int, offsets: Iterable[int]) -> None:
        """Settle all of these messages; ignored for a partition that the lane no longer owns."""
        window = self.windows.get(slot)
        if window is not None:
            window.settle_all(offsets)

    def bound_windows(self, messages: int, size_bytes: int) -> None:
        """Limit each ack window below the settings."""
        self._partitions.bound(messages, size_bytes)

    @property
    def audits(self) -> Checkpointer:
        """Checkpointer, which counts the checkpoints begun and stored."""
        return self._checkpointer

    def keep_notes(self, note: Callable[[int, int], str], recall: Callable[[int, str], None]) -> None:
        """Commit a note as metadata with each offset, and recall it when a slot is first read."""
        self._checkpointer.note = note
        self._partitions.recall = recall

    def renote(self, slot: int) -> None:
        """Commit the slot's current note with the next checkpoint, even if its offset has not moved."""
        self._checkpointer.commit_failed([slot])

    def committed_note(self, slot: int) -> str:
        """Return the note committed with the slot's offset; "" if the broker does not respond at once."""
        return self._partitions.committed_note(slot)

    def owns(self, slot: int) -> bool:
        """Return True if the lane owns the partition."""
        return self._partitions.owns(slot)

    def may_send(self, slot: int) -> bool:
        """Return True if a send may begin: the lane owns the partition and has polled within its session timeout."""
        return self._partitions.owns(slot) and time.monotonic() - self._last_poll < SESSION_TIMEOUT_MS / 1_000

    def read_all(self, messages: Iterable[Message]) -> list[tuple[Message, MessageMeta, Headers]]:
        """Return each message with its decoded `Meta` and all of its headers; dead-letter unreadable ones."""
        return self._envelopes.read_all(messages)

    # -- the loop --------------------------------------------------------------------------------------------------

    def leave(self, reason: str) -> None:
        """Fail at the next poll, without a drain: another lane gets the partitions before the session times out.

        Safe to call in a signal handler.
        """
        self._must_leave = reason

    def run(self) -> str:
        """Process messages until a drain is requested. Return "drained", or "failed(<reason>)" for a lane's own errors.

        After a failure nothing more is committed: facts and timings of the interrupted work are missing or incomplete.
        The next lane reads the messages again.
        """
        try:
            try:
                self._run_until_drained()
            finally:
                self._close()
        except _OWN_ERRORS as exc:
            log.exception("lane %s failed", self.identity.writer)
            return f"failed({exc})"
        return "drained"

    def _run_until_drained(self) -> None:
        try:
            self._consumer.subscribe(
                self.slots.topics,
                on_assign=self._rebalance.assigned,
                on_revoke=self._rebalance.revoked,
                on_lost=self._rebalance.lost,
            )
            self._last_poll = time.monotonic()
            while not self._must_stop():
                self._pass()
            self._drain()
        except _OWN_ERRORS:
            self._crashes.close()
            raise
        except BaseException:
            self._crashes.abandon()
            raise
        self._crashes.close()

    def _pass(self) -> None:
        self._watchdog.pat()
        messages = self._fetch()
        if messages:
            self.usage.poll(idle=False)
            self._hand_over(messages)
        self._work.poll()
        self._collect(0.0)
        now = time.monotonic()
        if not messages:
            idle = not (self._work.in_flight() or self._work.backlog() or self.producer.in_flight)
            self.usage.poll(idle=idle)
            if idle:
                self._memory.trim(now)
        if now >= self._checkpoint_due and not self._checkpointer.busy:
            self._checkpoint_due = now + self.settings.checkpoint_ms / 1_000
            self._freeze()
        if self._pulse.due():
            self._beat("running")

    def _fetch(self) -> list[Message]:
        """Wait for the first message as long as the work allows, then take all that the client has already fetched."""
        # The facts of settled messages would grow without bound while no checkpoint is stored. Polling continues.
        self._partitions.hold_back(all_full=self.producer.is_full or self._checkpointer.late_s > 0)
        first = self._poll(self._work.poll_timeout_s())
        if first is None:
            return []
        if self._crashes.is_careful:
            return self._partitions.admit([first])
        most = max(BATCH // 4, BATCH - self._work.backlog())  # a large backlog needs no full batch on top
        return self._partitions.admit([first, *self._consumer.consume(most, 0)])

    def _poll(self, timeout_s: float) -> Message | None:
        """Wait for a message. The client calls back about changed partitions meanwhile.

        Raises LaneError if the lane was stalled past its session timeout, before or during the wait: it may have lost
        its partitions without knowing, and must end before it begins a send.
        """
        self._note_progress()
        message = self._consumer.poll(timeout_s)
        self._note_progress()
        return message

    def _note_progress(self) -> None:
        """Note that the lane is alive.

        Raises LaneError if it has not been for longer than its session timeout, or if it is to leave.

        Time in callbacks does not count, up to what a healthy one needs: the client keeps the session alive meanwhile.
        """
        if self._must_leave:
            raise LaneError(self._must_leave)
        now_s, busy_s = time.monotonic(), self._rebalance.busy_s
        stalled_s = now_s - self._last_poll - min(busy_s - self._busy_s, CALLBACK_S)
        if stalled_s > SESSION_TIMEOUT_MS / 1_000:
            raise LaneError(f"stalled for {stalled_s:.0f} s, past the session timeout; its partitions may be lost")
        self._last_poll, self._busy_s = now_s, busy_s

    def _hand_over(self, messages: list[Message]) -> None:
        """Pass messages to the work: together, or one at a time after repeated crashes on this host."""
        if not self._crashes.is_careful:
            if self._crashes.is_alert:
                last = {self.slots.of(message): message.offset() for message in messages}
                for slot, offset in last.items():
                    self._crashes.handed(self._partitions.file_name(slot), offset)
            self._work.process(messages)
            return
        for message in messages:
            self._hand_over_alone(message, self.slots.of(message))

    def _hand_over_alone(self, message: Message, slot: int) -> None:
        """Process one message alone: return once it is settled, waits for its time, or ALONE_S has passed."""
        name, offset = self._partitions.file_name(slot), message.offset()
        if not self._crashes.try_alone(name, offset, time.time()):
            log.error("dead: message at %s %d crashed lanes that processed it alone", name, offset)
            self._work.dead_letter_poison(message)
            return
        self._work.process([message])
        deadline = time.monotonic() + ALONE_S
        while (window := self.windows.get(slot)) and window.is_unsettled(offset) and time.monotonic() < deadline:
            self._watchdog.pat()
            self._work.poll()
            self._collect(BUSY_WAIT_S)
            if not (self._work.in_flight() or self._work.backlog() or self.producer.in_flight):
                break
        self._crashes.survived(name, time.time())

    def _collect(self, wait_s: float, *, commit_now: bool = False) -> None:
        for token in self.producer.collect(wait_s):
            if isinstance(token, FrozenCheckpoint):
                self._checkpointer.audited(token, wait=commit_now)
            elif isinstance(token, UnreadableEnvelope):
                self.settle(token.slot, token.offset)
            else:
                self._work.on_delivery(token)

    def _freeze(self) -> None:
        self._work.report()
        reports = (self.usage.take_if_due(), self.fields.take_if_due())
        self._checkpointer.freeze(self.windows, self.facts, self.lags, *reports)

    def _beat(self, state: str) -> None:
        self._crashes.expire(time.time())
        self.tally.write()
        self._pulse.beat(
            state,
            self.table.offset,
            partitions=self._partitions.names,
            unsettled=self._partitions.unsettled,
            detail=self._trouble,
            failing_files=self.files.failing,
            held_pipes=self.held_pipes,
            dropped_spans=self.tracing.dropped if self.tracing is not None else 0,
        )

    @property
    def _trouble(self) -> str:
        """Text of the lane's current problems, unchanged while they last; "" if there is none."""
        unstored = "no checkpoint is stored" if self._checkpointer.late_s else ""
        return "; ".join(filter(None, (self._partitions.trouble, self.producer.trouble, unstored, self.files.trouble)))

    def _settle_within(self, seconds: float) -> None:
        """Advance work without reading more until none is in progress or the time is over, then checkpoint."""
        deadline = time.monotonic() + seconds
        while (self._work.in_flight() or self.producer.in_flight) and time.monotonic() < deadline:
            self._watchdog.pat()
            self._work.poll()
            self._collect(0.005)
        self._freeze()
        while self._checkpointer.busy and time.monotonic() < deadline + REVOKE_S:
            self._watchdog.pat()
            self._collect(0.02, commit_now=True)

    def _committed(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        failed = [p for p in partitions if error is not None or p.error is not None]
        self._checkpointer.commit_failed(map(self.slots.number, failed))

    # -- start and end ---------------------------------------------------------------------------------------------

    def _await_cell(self) -> CellRecord:
        """Return the cell's record with the lane's topics. Raises LaneError after 30 s without one.

        The control topic is read to its end first: the host's snapshot may be older than the record that requests this
        lane, which would then drain at once. While the broker is unreachable, the snapshot is used.
        """
        inputs = INPUTS_OF[self.identity.kind]
        self._reader.catch_up(CATCH_UP_S)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            self._reader.refresh()
            cell = self.table.cell(self.identity.cell)
            if cell is not None and all(purpose in cell.topics for purpose in inputs):
                return cell
            time.sleep(0.05)
        raise LaneError(f"no record of cell {self.identity.cell} with topics for {inputs} within 30 s")

    def _must_stop(self) -> bool:
        now = time.monotonic()
        if now < self._control_due:
            return False
        self._control_due = now + CONTROL_EVERY_S
        self._reader.refresh()
        return should_drain(self.table, self.identity)

    def _drain(self) -> None:
        """Stop reading, wait for work in progress, schedule retries for the rest, and checkpoint."""
        log.info("lane %s: draining", self.identity.writer)
        self._beat("draining")
        if self._consumer.assignment():
            self._consumer.pause(self._consumer.assignment())
        deadline = time.monotonic() + DRAIN_S
        while self._work.in_flight() and time.monotonic() < deadline:
            self._watchdog.pat()
            self._poll(0)  # otherwise `may_send` refuses sends after the session timeout
            self._work.poll()
            self._collect(0.005)
        self._work.on_drain_timeout()
        self.usage.hasten()
        self.fields.hasten()
        self._settle_within(REVOKE_S)
        self._beat("drained")

    def _close(self) -> None:
        """Close everything, even if some part raises."""
        self._rebalance.is_closing = True
        with ExitStack() as stack:  # runs in reverse order
            stack.callback(self._watchdog.close)
            stack.callback(self._reader.close)
            stack.callback(self._producer.flush, REVOKE_S)
            stack.callback(self._consumer.close)
            stack.callback(leave_group, self._consumer)
            stack.callback(self._work.close)


def should_drain(table: ControlTable, identity: LaneIdentity) -> bool:
    """Return True if the control table no longer wants this lane; False for a cell without a record."""
    stop = table.stop(identity.cell)
    if stop is not None and stop.incarnation == identity.incarnation:
        return True
    cell = table.cell(identity.cell)
    if cell is None:
        return False
    return cell.epoch > identity.epoch or identity.number >= cell.lanes.get(identity.kind, 0)
