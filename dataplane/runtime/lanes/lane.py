"""Lane loop, shared by all kinds of lanes: poll, process, settle by delivery report, checkpoint, rebalance, drain.

One thread owns everything here. A `LaneWork` defines how one kind of lane processes messages; the loop does not know.
"""

import logging
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import groupby
from typing import Any, Final, NamedTuple, Protocol

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from msgspec import Struct

from dataplane.ledger.deadletter import CAUSE_HEADER, ORIGINAL_HEADER
from dataplane.ledger.facts import FactBook
from dataplane.ledger.meta import Headers, MessageMeta, read_meta
from dataplane.names import INPUTS_OF, LaneKind, lane_group
from dataplane.runtime.kafka import SESSION_TIMEOUT_MS, lane_consumer, lane_producer
from dataplane.runtime.lanes.checkpoint import Checkpointer, FrozenCheckpoint
from dataplane.runtime.lanes.deadletters import fits
from dataplane.runtime.lanes.poison import PoisonTracker
from dataplane.runtime.lanes.slots import PartitionSlots
from dataplane.runtime.lanes.watchdog import Watchdog
from dataplane.runtime.lanes.window import AckWindow
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
NOTE_S: Final = 1.5
NOTE_NOW_S: Final = 0.3
NOTE_TRIES: Final = 3  # together shorter than the session timeout, or the lane would consider itself a zombie
MAX_WINDOW_BYTES: Final = 64 * 1024 * 1024
IDLE_WAIT_S: Final = 0.1
BUSY_WAIT_S: Final = 0.001
ALONE_S: Final = 1.0  # how long a message that is processed alone is watched for a crash


class LaneIdentity(Struct, frozen=True):
    """Identity of a lane. Epoch and incarnation are those of the application that runs it."""

    cell: str
    kind: LaneKind
    number: int
    epoch: int
    incarnation: str

    @property
    def writer(self) -> str:
        """Name of the lane within its cell."""
        return f"{self.kind}-{self.number}"


class LaneWork(Protocol):
    """Processing of messages by one kind of lane. The lane calls these methods from its thread."""

    def process(self, messages: Sequence[Message]) -> None:
        """Begin to process messages; each is settled later through `Lane.settle`."""

    def dead_letter_poison(self, message: Message) -> None:
        """Dead-letter a message that crashed lanes, with the cause `crashes-lane` and without parsing its body."""

    def poll(self) -> None:
        """Advance work in progress. Called on every pass; blocks no longer than `poll_timeout_s()`."""

    def on_delivery(self, token: Any) -> None:
        """Handle the token of a record that the lane's producer has stored."""

    def in_flight(self) -> int:
        """Return the number of messages begun and not settled, without records in the producer."""

    def backlog(self) -> int:
        """Return the number of messages taken and not begun; a drain leaves them uncommitted."""

    def poll_timeout_s(self) -> float:
        """Return how long the loop may wait for messages now, in seconds."""

    def report(self) -> None:
        """Produce the records that belong to a checkpoint, which is due."""

    def on_revoked(self, slots: Iterable[int]) -> None:
        """Begin nothing more for these revoked partitions, and drop their messages that have not begun."""

    def on_drain_timeout(self) -> None:
        """Settle work in progress in another way (schedule a retry), because the time to drain is over."""

    def close(self) -> None:
        """Release connections and files."""


class _Unreadable(NamedTuple):
    """Token of a message that was dead-lettered because its envelope is unreadable."""

    slot: int
    offset: int


class LaneError(Exception):
    """The lane cannot continue; the driver restarts it from the committed offsets."""


_OWN_ERRORS: Final = (LaneError, ProducerFencedError, KafkaException, OSError)  # not caused by a message


class Lane:
    """One lane from start to drain.

    A `LaneWork` may use its settings, table, producer, facts, lags, usage, fields, files, tally and tracing.
    """

    def __init__(
        self,
        identity: LaneIdentity,
        settings: DataPlaneSettings,
        make_work: "Callable[[Lane], LaneWork]",
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
        self.windows: dict[int, AckWindow] = {}
        group = lane_group(identity.cell, identity.kind)
        self._consumer: Consumer = lane_consumer(settings.kafka, group, name, self._committed)
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
        self._most = (settings.max_unsettled, MAX_WINDOW_BYTES)
        self._ours: set[int] = set()
        self._paused: set[int] = set()
        self._last_poll = time.monotonic()
        self._control_due = self._checkpoint_due = 0.0
        self._stopped: dict[int, str] = {}  # partitions that are no longer read, with the reason
        self._is_closing = False
        self._recall: Callable[[int, str], None] | None = None
        self._work = make_work(self)

    # -- interface for a LaneWork ----------------------------------------------------------------------------------

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
        """Limit each ack window below the settings, for a work that reads many partitions and holds their messages."""
        self._most = (min(messages, self.settings.max_unsettled), size_bytes)

    @property
    def audits(self) -> Checkpointer:
        """Checkpointer, which counts the checkpoints begun and stored."""
        return self._checkpointer

    def keep_notes(self, note: Callable[[int, int], str], recall: Callable[[int, str], None]) -> None:
        """Commit a note as metadata with each offset, for the next owner of the partition.

        `note(slot, offset)` returns the text that summarises everything below the offset; `recall(slot, text)` is
        called when the slot is read from there.
        """
        self._checkpointer.note = note
        self._recall = recall

    def renote(self, slot: int) -> None:
        """Commit the slot's current note with the next checkpoint, even if its offset has not moved."""
        self._checkpointer.commit_failed([slot])

    def committed_note(self, slot: int) -> str:
        """Return the note committed with the slot's offset; "" if the broker does not answer within NOTE_NOW_S."""
        try:
            (committed,) = self._consumer.committed([self.slots.at(slot)], timeout=NOTE_NOW_S)
        except KafkaException:
            return ""
        return str(committed.metadata or "") if committed.error is None else ""

    def owns(self, slot: int) -> bool:
        """Return True if the lane owns the partition."""
        return slot in self._ours

    def may_send(self, slot: int) -> bool:
        """Return True if a send may begin: the lane owns the partition and has polled within its session timeout."""
        return slot in self._ours and time.monotonic() - self._last_poll < SESSION_TIMEOUT_MS / 1_000

    def read_all(self, messages: Iterable[Message]) -> list[tuple[Message, MessageMeta, Headers]]:
        """Return each message with its decoded `Meta` and all of its headers, the `Meta` header first. A hot loop.

        A message with an unreadable `Meta` header cannot be counted for a pipe: it is dead-lettered as a whole.
        """
        known = []
        for message in messages:
            headers: Headers = message.headers() or []
            try:
                known.append((message, read_meta(headers), headers))
            except (KeyError, msgspec.DecodeError) as exc:
                self._dead_letter_unreadable(message, headers, exc)
        return known

    def _dead_letter_unreadable(self, message: Message, headers: Headers, error: Exception) -> None:
        slot, offset = self.slots.of(message), message.offset()
        log.error("dead: unreadable envelope at %s: %s", (*self.slots.place(slot), offset), error)
        cause: Headers = [(CAUSE_HEADER, b"envelope")]
        marked, value = [*headers, *cause], message.value()
        if not fits(value, None, marked):
            original = "{}/{}/{}".format(*self.slots.place(slot), offset)
            marked, value = [*cause, (ORIGINAL_HEADER, original.encode())], b""
        self.producer.send(self.cell.topics["dead"].name, _Unreadable(slot, offset), value=value, headers=marked)

    # -- the loop --------------------------------------------------------------------------------------------------

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
                self.slots.topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
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
        if not messages:
            self.usage.poll(idle=not (self._work.in_flight() or self._work.backlog() or self.producer.in_flight))
        now = time.monotonic()
        if now >= self._checkpoint_due and not self._checkpointer.busy:
            self._checkpoint_due = now + self.settings.checkpoint_ms / 1_000
            self._freeze()
        if self._pulse.due():
            self._beat("running")

    def _fetch(self) -> list[Message]:
        """Wait for the first message as long as the work allows, then take all that the client has already fetched.

        Raises LaneError if the lane was stalled past its session timeout: it may have lost its partitions without
        knowing, and must end before it begins a send.
        """
        stalled_s = time.monotonic() - self._last_poll
        if stalled_s > SESSION_TIMEOUT_MS / 1_000:
            raise LaneError(f"stalled for {stalled_s:.0f} s, past the session timeout; its partitions may be lost")
        self._hold_back()
        first = self._consumer.poll(self._work.poll_timeout_s())
        self._last_poll = time.monotonic()
        if first is None:
            return []
        if self._crashes.is_careful:
            return self._admit([first])
        most = max(BATCH // 4, BATCH - self._work.backlog())  # a large backlog needs no full batch on top
        return self._admit([first, *self._consumer.consume(most, 0)])

    def _admit(self, messages: list[Message]) -> list[Message]:
        """Add fetched messages to the ack windows; return those of owned partitions, without repeats. A hot loop."""
        valid = [message for message in messages if message.error() is None]
        if len(valid) < len(messages):
            for message in messages:
                if message.error() is not None:
                    self._note_error(message)
        admitted: list[Message] = []
        for slot, stretch in groupby(valid, self.slots.of):
            admitted += self._admit_stretch(slot, list(stretch))
        return admitted

    def _admit_stretch(self, slot: int, messages: list[Message]) -> list[Message]:
        """Add consecutive messages of one partition to its window; return the new ones."""
        window = self.windows.get(slot) or self._open_window(slot, messages[0].offset())
        if window is None:
            return []  # revoked while this batch was fetched
        next_offset, fresh, offsets = window.next_offset, [], []
        for message in messages:
            offset = message.offset()
            if offset >= next_offset:  # otherwise it is in the window already and was read again after a resume
                next_offset = offset + 1
                fresh.append(message)
                offsets.append(offset)
        window.take_all(offsets, list(map(buffered_bytes, fresh)))
        return fresh

    def _hand_over(self, messages: list[Message]) -> None:
        """Pass messages to the work: together, or one at a time after repeated crashes on this host."""
        if not self._crashes.is_careful:
            if self._crashes.is_alert:
                last = {self.slots.of(message): message.offset() for message in messages}
                for slot, offset in last.items():
                    self._crashes.handed(self._note_name(slot), offset)
            self._work.process(messages)
            return
        for message in messages:
            self._hand_over_alone(message, self.slots.of(message))

    def _hand_over_alone(self, message: Message, slot: int) -> None:
        """Process one message alone: return once it is settled, waits for its time, or ALONE_S has passed."""
        name, offset = self._note_name(slot), message.offset()
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

    def _open_window(self, slot: int, offset: int) -> AckWindow | None:
        if slot not in self._ours:
            return None
        if self._recall is not None:
            self._recall(slot, self._note_of(slot))
        window = self.windows[slot] = AckWindow(offset)
        self._crashes.opened(self._note_name(slot), offset, time.time())
        return window

    def _note_of(self, slot: int) -> str:
        """Return the note committed with the slot's offset. Raises LaneError if the broker does not answer."""
        for _ in range(NOTE_TRIES):
            self._watchdog.pat()
            try:
                (committed,) = self._consumer.committed([self.slots.at(slot)], timeout=NOTE_S)
            except KafkaException as exc:
                log.warning("lane %s: could not read the note of %s: %s", self.identity.writer, self._name(slot), exc)
                continue
            if committed.error is None:
                return str(committed.metadata or "")
        raise LaneError(f"could not read the committed offset of {self._name(slot)}")

    def _note_error(self, message: Message) -> None:
        error = message.error()
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._stop_partition(self.slots.of(message), error)
        elif error.fatal():
            raise LaneError(error.str())
        else:
            log.warning("lane %s: %s", self.identity.writer, error.str())

    def _stop_partition(self, slot: int, error: KafkaError) -> None:
        """Stop reading a partition whose offset is out of range. It is never reset; the heartbeat reports it."""
        self._stopped[slot] = f"{self._name(slot)} stopped: {error.str()}"
        log.error("lane %s: %s", self.identity.writer, self._stopped[slot])
        self._consumer.pause([self.slots.at(slot)])

    def _hold_back(self) -> None:
        """Pause partitions whose window has reached its limit, resume them at half of it.

        All are paused while many records are rejected, and while no checkpoint is stored: the facts of settled messages
        would grow without bound. Polling continues meanwhile.
        """
        full, (most, most_bytes) = self.producer.is_full or self._checkpointer.late_s > 0, self._most
        for slot in self._ours:
            window = self.windows.get(slot)
            span, size = (window.span, window.bytes) if window is not None else (0, 0)
            if slot not in self._paused and (full or span >= most or size >= most_bytes):
                self._consumer.pause([self.slots.at(slot)])
                self._paused.add(slot)
            elif slot in self._paused and not full and span <= most // 2 and size <= most_bytes // 2:
                self._consumer.resume([self.slots.at(slot)])
                self._paused.discard(slot)

    def _collect(self, wait_s: float, *, commit_now: bool = False) -> None:
        for token in self.producer.collect(wait_s):
            if isinstance(token, FrozenCheckpoint):
                self._checkpointer.audited(token, wait=commit_now)
            elif isinstance(token, _Unreadable):
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
            partitions=[self._name(slot) for slot in sorted(self._ours)],
            unsettled=sum(window.unsettled for window in self.windows.values()),
            detail=self._trouble,
            failing_files=self.files.failing,
            held_pipes=self.held_pipes,
            dropped_spans=self.tracing.dropped if self.tracing is not None else 0,
        )

    @property
    def _trouble(self) -> str:
        """Text of the lane's current problems, unchanged while they last; "" if there is none."""
        unstored = "no checkpoint is stored" if self._checkpointer.late_s else ""
        stopped = next(iter(self._stopped.values()), "")
        return "; ".join(filter(None, (stopped, self.producer.trouble, unstored, self.files.trouble)))

    # -- rebalance -------------------------------------------------------------------------------------------------

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        slots = [self.slots.number(place) for place in partitions]
        log.info("lane %s: assigned %s", self.identity.writer, [self._name(slot) for slot in slots])
        self._ours.update(slots)
        self._crashes.assigned(map(self._note_name, slots), time.time())
        consumer.incremental_assign(partitions)

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Wait briefly for work in progress, checkpoint it, then release the partitions.

        A closing lane has made its last checkpoint, or has failed and must not make one: it only releases them.
        """
        slots = [self.slots.number(place) for place in partitions]
        log.info("lane %s: revoked %s", self.identity.writer, [self._name(slot) for slot in slots])
        if not self._is_closing:
            self._work.on_revoked(slots)
            self._settle_within(REVOKE_S)
        self._let_go(slots)
        for slot in slots:
            self._crashes.let_go(self._note_name(slot))
        consumer.incremental_unassign(partitions)

    def _lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Drop partitions that another lane already owns, and commit nothing."""
        slots = [self.slots.number(place) for place in partitions]
        log.warning("lane %s: lost %s", self.identity.writer, [self._name(slot) for slot in slots])
        if not self._is_closing:
            self._work.on_revoked(slots)
        self._let_go(slots)
        for slot in slots:
            self._crashes.lost(self._note_name(slot))
        consumer.incremental_unassign(partitions)

    def _let_go(self, slots: Iterable[int]) -> None:
        """Drop partitions. The client keeps a pause beyond their assignment, so that each one is resumed here."""
        for slot in slots:
            self.windows.pop(slot, None)
            self._ours.discard(slot)
            if slot in self._paused or slot in self._stopped:
                self._consumer.resume([self.slots.at(slot)])
            self._paused.discard(slot)
            self._stopped.pop(slot, None)
            self._checkpointer.forget(slot)

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

    def _name(self, slot: int) -> str:
        return "{}/{}".format(*self.slots.place(slot))

    def _note_name(self, slot: int) -> str:
        return "{}-{}".format(*self.slots.place(slot))

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
            self._consumer.poll(0)
            self._last_poll = time.monotonic()  # otherwise `may_send` refuses sends after the session timeout
            self._work.poll()
            self._collect(0.005)
        self._work.on_drain_timeout()
        self.usage.hasten()
        self.fields.hasten()
        self._settle_within(REVOKE_S)
        self._beat("drained")

    def _close(self) -> None:
        """Close everything, even if some part raises."""
        self._is_closing = True
        with ExitStack() as stack:  # runs in reverse order
            stack.callback(self._watchdog.close)
            stack.callback(self._reader.close)
            stack.callback(self._producer.flush, REVOKE_S)
            stack.callback(self._consumer.close)
            stack.callback(self._work.close)


def buffered_bytes(message: Message) -> int:
    """Return the memory that a message holds: body and headers, as either may be large. A hot path."""
    size = len(message)
    for _, value in message.headers() or ():  # decoded once: later calls return the same list
        size += len(value or b"")
    return size


def should_drain(table: ControlTable, identity: LaneIdentity) -> bool:
    """Return True if the control table no longer wants this lane; False for a cell without a record."""
    stop = table.stop(identity.cell)
    if stop is not None and stop.incarnation == identity.incarnation:
        return True
    cell = table.cell(identity.cell)
    if cell is None:
        return False
    return cell.epoch > identity.epoch or identity.number >= cell.lanes.get(identity.kind, 0)
