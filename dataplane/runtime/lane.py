"""The lane loop, shared by all kinds: poll, hand to the work, settle by report, checkpoint, rebalance, drain.

One thread owns everything here. What a kind of lane does with a message is its `Work`; the loop knows nothing of it.
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
from dataplane.ledger.meta import Headers, Meta, read_meta
from dataplane.names import INPUTS_OF, LaneKind, lane_group
from dataplane.runtime.checkpoint import Checkpointer, Frozen
from dataplane.runtime.crashes import Crashes
from dataplane.runtime.deadletters import fits
from dataplane.runtime.fields import FieldBook
from dataplane.runtime.heartbeat import Pulse
from dataplane.runtime.kafka import SESSION_TIMEOUT_MS, lane_consumer, lane_producer
from dataplane.runtime.lags import LagBook
from dataplane.runtime.outbox import Outbox, ProducerDeadError
from dataplane.runtime.settings import Settings
from dataplane.runtime.slots import Slots
from dataplane.runtime.tally import Tally
from dataplane.runtime.tracing import Tracing
from dataplane.runtime.usage import UsageBook
from dataplane.runtime.watchdog import Watchdog
from dataplane.runtime.window import AckWindow
from dataplane.tables.control import ControlReader, ControlTable, snapshot_path
from dataplane.tables.optional_files import OptionalFiles
from dataplane.tables.records import CellRecord

log = logging.getLogger(__name__)

BATCH: Final = 500  # few enough for what is made of them to stay in the CPU's cache: 2 000 cost a fifth more
CATCH_UP_S: Final = 5.0
CONTROL_EVERY_S: Final = 0.1
DRAIN_S: Final = 25.0
REVOKE_S: Final = 5.0
NOTE_S: Final = 1.5
NOTE_NOW_S: Final = 0.3
NOTE_TRIES: Final = 3  # together below the session's time, or the lane would take itself for a zombie
MAX_WINDOW_BYTES: Final = 64 * 1024 * 1024
IDLE_WAIT_S: Final = 0.1
BUSY_WAIT_S: Final = 0.001
ALONE_S: Final = 1.0  # how long a message that is tried alone may take to kill


class LaneIdentity(Struct, frozen=True):
    """Which lane this is. Epoch and incarnation are those of the application that runs it."""

    cell: str
    kind: LaneKind
    number: int
    epoch: int
    incarnation: str

    @property
    def writer(self) -> str:
        """The lane's name within its cell."""
        return f"{self.kind}-{self.number}"


class Work(Protocol):
    """What a kind of lane does with messages."""

    def take(self, messages: Sequence[Message]) -> None:
        """Begin on messages; each is settled later through `Lane.settle`."""

    def condemn(self, message: Message) -> None:
        """Lanes died of this message: bury it with the cause CRASHES_LANE, without looking into its body."""

    def turn(self) -> None:
        """Move on what is under way. Called on every pass; does not block longer than `patience`."""

    def acked(self, token: Any) -> None:
        """A record sent through the outbox with this token is stored."""

    def in_flight(self) -> int:
        """Messages begun and not yet settled, apart from records in the outbox."""

    def backlog(self) -> int:
        """Messages taken and not begun, which wait for their turn; a drain leaves them uncommitted."""

    def patience_s(self) -> float:
        """How long the loop may wait for messages now."""

    def report(self) -> None:
        """A checkpoint is due: send what belongs with it."""

    def forget(self, slots: Iterable[int]) -> None:
        """These partitions are no longer ours: begin nothing more for them, give up what has not begun."""

    def give_back(self) -> None:
        """The drain's time is over: settle what is still under way some other way (park it)."""

    def close(self) -> None:
        """Release what was opened."""


class _Unreadable(NamedTuple):
    """Token of a message that was buried because its envelope is none of ours."""

    slot: int
    offset: int


class LaneError(Exception):
    """The lane cannot go on; the driver starts it anew from the committed offsets."""


_OWN_ERRORS: Final = (LaneError, ProducerDeadError, KafkaException, OSError)  # no message is to blame for them


class Lane:
    """One lane from opening to drain. A Work may use its settings, table, outbox, books, files, tally and tracing."""

    def __init__(
        self,
        identity: LaneIdentity,
        settings: Settings,
        make_work: "Callable[[Lane], Work]",
        tracing: Tracing | None = None,
    ) -> None:
        """`tracing` is closed by whoever made it."""
        self.identity = identity
        self.settings = settings
        self.tracing = tracing
        self.usage = UsageBook()
        self.fields = FieldBook(settings.fields)
        self.files = OptionalFiles()
        self.held_pipes = 0  # pipes that the work holds because something is missing here
        self._reader = ControlReader(settings.kafka, snapshot_path(settings.var), self.files)
        self.table: ControlTable = self._reader.table
        self.cell = self._await_cell()
        self.slots = Slots([self.cell.topics[purpose].name for purpose in INPUTS_OF[identity.kind]])
        name = f"{identity.cell}-{identity.writer}"
        self._producer = lane_producer(settings.kafka, name)
        self.outbox = Outbox(self._producer)
        self.facts = FactBook()
        self.tally = Tally()
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
            outbox=self.outbox,
        )
        self._pulse = Pulse(
            self._producer,
            cell=identity.cell,
            writer=identity.writer,
            kind=identity.kind,
            epoch=identity.epoch,
            incarnation=identity.incarnation,
        )
        self._crashes = Crashes(settings.var / "data" / "crashes", self.files)
        self._watchdog = Watchdog()
        self._most = (settings.max_unsettled, MAX_WINDOW_BYTES)
        self._ours: set[int] = set()
        self._paused: set[int] = set()
        self._last_poll = time.monotonic()
        self._control_due = self._checkpoint_due = 0.0
        self._stopped: dict[int, str] = {}  # partitions that are not read, and why
        self._is_closing = False
        self._recall: Callable[[int, str], None] | None = None
        self._work = make_work(self)

    # -- what a Work uses ------------------------------------------------------------------------------------------

    def settle(self, slot: int, offset: int) -> None:
        """A message is done; a partition that is no longer ours is ignored."""
        window = self.windows.get(slot)
        if window is not None:
            window.settle(offset)

    def settle_all(self, slot: int, offsets: Iterable[int]) -> None:
        """All of these messages are done."""
        window = self.windows.get(slot)
        if window is not None:
            window.settle_all(offsets)

    def bound_windows(self, messages: int, size_bytes: int) -> None:
        """Hold less of each partition than the settings allow: for who reads many, and waits."""
        self._most = (min(messages, self.settings.max_unsettled), size_bytes)

    @property
    def audits(self) -> Checkpointer:
        """How many audit records were begun, and how many are stored."""
        return self._checkpointer

    def keep_notes(self, note: Callable[[int, int], str], recall: Callable[[int, str], None]) -> None:
        """`note` says what to commit beside an offset of a slot; `recall` is told it when the slot is read from there.

        A note says what follows from everything below its offset, for whoever owns the partition next.
        """
        self._checkpointer.note = note
        self._recall = recall

    def renote(self, slot: int) -> None:
        """Commit beside the slot's offset what its note says now, with the next checkpoint, although nothing moved."""
        self._checkpointer.commit_failed([slot])

    def committed_note(self, slot: int) -> str:
        """What is committed beside the slot's offset; "" if nobody answers at once."""
        try:
            (committed,) = self._consumer.committed([self.slots.at(slot)], timeout=NOTE_NOW_S)
        except KafkaException:
            return ""
        return str(committed.metadata or "") if committed.error is None else ""

    def owns(self, slot: int) -> bool:
        """Whether the partition is ours."""
        return slot in self._ours

    def may_send(self, slot: int) -> bool:
        """Whether a send may begin: the partition is ours and we are no zombie that was asleep past its session."""
        return slot in self._ours and time.monotonic() - self._last_poll < SESSION_TIMEOUT_MS / 1_000

    def read_all(self, messages: Iterable[Message]) -> list[tuple[Message, Meta, Headers]]:
        """Each message with our header decoded and all of its headers, ours first. A hot loop.

        A message whose header cannot be read cannot be accounted to a pipe: it is kept whole, as dead.
        """
        known = []
        for message in messages:
            headers: Headers = message.headers() or []
            try:
                known.append((message, read_meta(headers), headers))
            except (KeyError, msgspec.DecodeError) as exc:
                self._bury_unreadable(message, headers, exc)
        return known

    def _bury_unreadable(self, message: Message, headers: Headers, why: Exception) -> None:
        place = (self.slots.of(message), message.offset())
        log.error("dead: unreadable envelope at %s: %s", (*self.slots.place(place[0]), place[1]), why)
        cause: Headers = [(CAUSE_HEADER, b"envelope")]
        marked, value = [*headers, *cause], message.value()
        if not fits(value, None, marked):
            original = "{}/{}/{}".format(*self.slots.place(place[0]), place[1])
            marked, value = [*cause, (ORIGINAL_HEADER, original.encode())], b""
        self.outbox.send(self.cell.topics["dead"].name, _Unreadable(*place), value=value, headers=marked)

    # -- the loop --------------------------------------------------------------------------------------------------

    def run(self) -> str:
        """Process messages until asked to drain. Returns "drained", or "failed(<reason>)" for a lane's own errors.

        However it fails, nothing more is committed: what an exception interrupted is in no book, or in half of them.
        The next lane reads it again.
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
            self.usage.turn(idle=False)
            self._hand_over(messages)
        self._work.turn()
        self._collect(0.0)
        if not messages:
            self.usage.turn(idle=not (self._work.in_flight() or self._work.backlog() or self.outbox.in_flight))
        now = time.monotonic()
        if now >= self._checkpoint_due and not self._checkpointer.busy:
            self._checkpoint_due = now + self.settings.checkpoint_ms / 1_000
            self._freeze()
        if self._pulse.due():
            self._beat("running")

    def _fetch(self) -> list[Message]:
        """What is there: wait for the first message if nothing is under way, then take all that is already fetched.

        Whoever stood still past its session is a zombie that has not been told yet: it ends before it begins a send.
        """
        still_s = time.monotonic() - self._last_poll
        if still_s > SESSION_TIMEOUT_MS / 1_000:
            raise LaneError(f"stood still for {still_s:.0f} s, past its session; its partitions may be somebody else's")
        self._hold_back()
        first = self._consumer.poll(self._work.patience_s())
        self._last_poll = time.monotonic()
        if first is None:
            return []
        if self._crashes.is_careful:
            return self._admit([first])
        most = max(BATCH // 4, BATCH - self._work.backlog())  # what waits already need not be joined by as many again
        return self._admit([first, *self._consumer.consume(most, 0)])

    def _admit(self, messages: list[Message]) -> list[Message]:
        """Put what was fetched into the windows of its partitions, and leave out what is none of ours. A hot loop."""
        sound = [message for message in messages if message.error() is None]
        if len(sound) < len(messages):
            for message in messages:
                if message.error() is not None:
                    self._note_error(message)
        good: list[Message] = []
        for slot, stretch in groupby(sound, self.slots.of):
            good += self._admit_stretch(slot, list(stretch))
        return good

    def _admit_stretch(self, slot: int, messages: list[Message]) -> list[Message]:
        """Messages of one partition, as they follow each other."""
        window = self.windows.get(slot) or self._open_window(slot, messages[0].offset())
        if window is None:
            return []  # revoked while this batch was fetched
        next_offset, fresh, offsets = window.next_offset, [], []
        for message in messages:
            offset = message.offset()
            if offset >= next_offset:  # else it is in the window already, and was read again after a resume
                next_offset = offset + 1
                fresh.append(message)
                offsets.append(offset)
        window.take_all(offsets, list(map(held_bytes, fresh)))
        return fresh

    def _hand_over(self, messages: list[Message]) -> None:
        """To the work: together, or one at a time where lanes have died of what is here."""
        if not self._crashes.is_careful:
            if self._crashes.is_alert:
                last = {self.slots.of(message): message.offset() for message in messages}
                for slot, offset in last.items():
                    self._crashes.handed(self._note_name(slot), offset)
            self._work.take(messages)
            return
        for message in messages:
            self._hand_over_alone(message, self.slots.of(message))

    def _hand_over_alone(self, message: Message, slot: int) -> None:
        """Nothing else is under way until this one is settled, waits for its time, or has had time to do harm."""
        name, offset = self._note_name(slot), message.offset()
        if not self._crashes.try_alone(name, offset, time.time()):
            log.error("dead: lanes died of %s %d each time they took it alone", name, offset)
            self._work.condemn(message)
            return
        self._work.take([message])
        deadline = time.monotonic() + ALONE_S
        while (window := self.windows.get(slot)) and window.owes(offset) and time.monotonic() < deadline:
            self._watchdog.pat()
            self._work.turn()
            self._collect(BUSY_WAIT_S)
            if not (self._work.in_flight() or self._work.backlog() or self.outbox.in_flight):
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
        """What is committed beside the offset from which the slot is read. Raises LaneError if no answer comes."""
        for _ in range(NOTE_TRIES):
            self._watchdog.pat()
            try:
                (committed,) = self._consumer.committed([self.slots.at(slot)], timeout=NOTE_S)
            except KafkaException as exc:
                log.warning("lane %s: the note of %s: %s", self.identity.writer, self._name(slot), exc)
                continue
            if committed.error is None:
                return str(committed.metadata or "")
        raise LaneError(f"no answer about what is committed of {self._name(slot)}")

    def _note_error(self, message: Message) -> None:
        error = message.error()
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._stop_partition(self.slots.of(message), error)
        elif error.fatal():
            raise LaneError(error.str())
        else:
            log.warning("lane %s: %s", self.identity.writer, error.str())

    def _stop_partition(self, slot: int, error: KafkaError) -> None:
        """Out of range is never answered by a jump: the partition stands still and the heartbeat says so."""
        self._stopped[slot] = f"{self._name(slot)} stopped: {error.str()}"
        log.error("lane %s: %s", self.identity.writer, self._stopped[slot])
        self._consumer.pause([self.slots.at(slot)])

    def _hold_back(self) -> None:
        """Pause partitions whose window is at its bound, resume them at half of it.

        All of them are paused while many records are refused, and while no checkpoint is stored: the books of what is
        settled would grow. Polling goes on meanwhile.
        """
        full, (most, most_bytes) = self.outbox.is_full or self._checkpointer.late_s > 0, self._most
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
        for token in self.outbox.collect(wait_s):
            if isinstance(token, Frozen):
                self._checkpointer.audited(token, wait=commit_now)
            elif isinstance(token, _Unreadable):
                self.settle(token.slot, token.offset)
            else:
                self._work.acked(token)

    def _freeze(self) -> None:
        self._work.report()
        told = (self.usage.take_if_due(), self.fields.take_if_due())
        self._checkpointer.freeze(self.windows, self.facts, self.lags, *told)

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
        """What is wrong here, in words that stay the same while it lasts; "" if nothing is."""
        unstored = "no checkpoint is stored" if self._checkpointer.late_s else ""
        stopped = next(iter(self._stopped.values()), "")
        return "; ".join(filter(None, (stopped, self.outbox.trouble, unstored, self.files.trouble)))

    # -- rebalance -------------------------------------------------------------------------------------------------

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        slots = [self.slots.number(place) for place in partitions]
        log.info("lane %s: assigned %s", self.identity.writer, [self._name(slot) for slot in slots])
        self._ours.update(slots)
        self._crashes.assigned(map(self._note_name, slots), time.time())
        consumer.incremental_assign(partitions)

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Wait a moment for what is under way, checkpoint it, then give the partitions up.

        A lane that closes has made its last checkpoint, or has failed and may not make one: it only gives them up.
        """
        slots = [self.slots.number(place) for place in partitions]
        log.info("lane %s: revoked %s", self.identity.writer, [self._name(slot) for slot in slots])
        if not self._is_closing:
            self._work.forget(slots)
            self._settle_within(REVOKE_S)
        self._let_go(slots)
        for slot in slots:
            self._crashes.let_go(self._note_name(slot))
        consumer.incremental_unassign(partitions)

    def _lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Forget partitions that another lane owns already, and commit nothing."""
        slots = [self.slots.number(place) for place in partitions]
        log.warning("lane %s: lost %s", self.identity.writer, [self._name(slot) for slot in slots])
        if not self._is_closing:
            self._work.forget(slots)
        self._let_go(slots)
        for slot in slots:
            self._crashes.lost(self._note_name(slot))
        consumer.incremental_unassign(partitions)

    def _let_go(self, slots: Iterable[int]) -> None:
        """Forget partitions. The client keeps a pause beyond their assignment, so each pause is taken back here."""
        for slot in slots:
            self.windows.pop(slot, None)
            self._ours.discard(slot)
            if slot in self._paused or slot in self._stopped:
                self._consumer.resume([self.slots.at(slot)])
            self._paused.discard(slot)
            self._stopped.pop(slot, None)
            self._checkpointer.forget(slot)

    def _settle_within(self, seconds: float) -> None:
        """Turn without taking until nothing is under way or the time is over, then checkpoint synchronously."""
        deadline = time.monotonic() + seconds
        while (self._work.in_flight() or self.outbox.in_flight) and time.monotonic() < deadline:
            self._watchdog.pat()
            self._work.turn()
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

    # -- beginning and end -----------------------------------------------------------------------------------------

    def _await_cell(self) -> CellRecord:
        """Return the cell's record with the lane's topics. Raises LaneError after 30 s without one.

        The topic is read to its end first: the host's snapshot may be older than the record that asks for this lane,
        which would then drain at once. While the broker is away, the snapshot has to do.
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
        """Stop taking, wait for what is under way, park the rest, account for it all."""
        log.info("lane %s: draining", self.identity.writer)
        self._beat("draining")
        if self._consumer.assignment():
            self._consumer.pause(self._consumer.assignment())
        deadline = time.monotonic() + DRAIN_S
        while self._work.in_flight() and time.monotonic() < deadline:
            self._watchdog.pat()
            self._consumer.poll(0)
            self._last_poll = time.monotonic()  # or no send would begin after the session timeout
            self._work.turn()
            self._collect(0.005)
        self._work.give_back()
        self.usage.hasten()
        self.fields.hasten()
        self._settle_within(REVOKE_S)
        self._beat("drained")

    def _close(self) -> None:
        """Close everything, whatever one of the parts raises."""
        self._is_closing = True
        with ExitStack() as stack:  # the last one first
            stack.callback(self._watchdog.close)
            stack.callback(self._reader.close)
            stack.callback(self._producer.flush, REVOKE_S)
            stack.callback(self._consumer.close)
            stack.callback(self._work.close)


def held_bytes(message: Message) -> int:
    """Return what a message holds of memory: body and headers, for either may be large. A hot path."""
    size = len(message)
    for _, value in message.headers() or ():  # decoded once: whoever asks next gets the same list
        size += len(value or b"")
    return size


def should_drain(table: ControlTable, identity: LaneIdentity) -> bool:
    """Whether the control table no longer wants this lane. A cell it knows nothing of stays as it is."""
    stop = table.stop(identity.cell)
    if stop is not None and stop.incarnation == identity.incarnation:
        return True
    cell = table.cell(identity.cell)
    if cell is None:
        return False
    return cell.epoch > identity.epoch or identity.number >= cell.lanes.get(identity.kind, 0)
