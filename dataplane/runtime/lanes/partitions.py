"""Partitions that a lane owns: their ack windows, pauses, stops and committed notes."""

import logging
import time
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from dataplane.runtime.lanes.context import MAX_WINDOW_BYTES, LaneError
from dataplane.runtime.lanes.poison import PoisonTracker
from dataplane.runtime.lanes.slots import PartitionSlots
from dataplane.runtime.lanes.window import AckWindow

log = logging.getLogger(__name__)

NOTE_S: Final = 1.5
NOTE_NOW_S: Final = 0.3
NOTE_TRIES: Final = 3  # together shorter than the session timeout, or the lane would consider itself a zombie


class AssignedPartitions:
    """State of each owned partition, keyed by slot. Only the lane's thread uses it."""

    def __init__(
        self,
        writer: str,
        slots: PartitionSlots,
        consumer: Consumer,
        crashes: PoisonTracker,
        *,
        pat: Callable[[], None],
        max_unsettled: int,
    ) -> None:
        """Own no partition yet. `pat` resets the watchdog during a slow read; `max_unsettled`: messages per window."""
        self.windows: dict[int, AckWindow] = {}
        self.recall: Callable[[int, str], None] | None = None  # called with slot and note when a slot is first read
        self._writer = writer
        self._slots = slots
        self._consumer = consumer
        self._crashes = crashes
        self._pat = pat
        self._max_unsettled = max_unsettled
        self._most = (max_unsettled, MAX_WINDOW_BYTES)
        self._owned: set[int] = set()
        self._paused: set[int] = set()
        self._stopped: dict[int, str] = {}  # partitions that are no longer read, with the reason

    def assign(self, slots: Iterable[int]) -> None:
        """Own these partitions from now on. Each window opens at the first message."""
        self._owned.update(slots)

    def release(self, slots: Iterable[int]) -> None:
        """Drop partitions. The client keeps a pause beyond their assignment, so that each one is resumed here."""
        for slot in slots:
            self.windows.pop(slot, None)
            self._owned.discard(slot)
            if slot in self._paused or slot in self._stopped:
                self._consumer.resume([self._slots.at(slot)])
            self._paused.discard(slot)
            self._stopped.pop(slot, None)

    def owns(self, slot: int) -> bool:
        """Return True if the lane owns the partition."""
        return slot in self._owned

    @property
    def names(self) -> list[str]:
        """Return the names of the owned partitions, in the order of their slots."""
        return [self.name(slot) for slot in sorted(self._owned)]

    @property
    def unsettled(self) -> int:
        """Return the number of messages that are read and not settled."""
        return sum(window.unsettled for window in self.windows.values())

    @property
    def trouble(self) -> str:
        """Return the reason why a partition is not read; "" if all are."""
        return next(iter(self._stopped.values()), "")

    def name(self, slot: int) -> str:
        """Return `topic/partition` of a slot."""
        return "{}/{}".format(*self._slots.place(slot))

    def file_name(self, slot: int) -> str:
        """Return the slot's name in the poison tracker, which names files by it."""
        return "{}-{}".format(*self._slots.place(slot))

    def bound(self, messages: int, size_bytes: int) -> None:
        """Limit each window to this many unsettled messages, if the settings allow as many, and bytes."""
        self._most = (min(messages, self._max_unsettled), size_bytes)

    def admit(self, messages: list[Message]) -> list[Message]:
        """Add fetched messages to the windows; return those of owned partitions, without repeats. A hot loop.

        Raises LaneError for a fatal error of the client.
        """
        valid = [message for message in messages if message.error() is None]
        if len(valid) < len(messages):
            for message in messages:
                if message.error() is not None:
                    self._handle_error(message)
        admitted: list[Message] = []
        for slot, stretch in groupby(valid, self._slots.of):
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

    def _open_window(self, slot: int, offset: int) -> AckWindow | None:
        if slot not in self._owned:
            return None
        if self.recall is not None:
            self.recall(slot, self._note_of(slot))
        window = self.windows[slot] = AckWindow(offset)
        self._crashes.opened(self.file_name(slot), offset, time.time())
        return window

    def _handle_error(self, message: Message) -> None:
        error = message.error()
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            self.stop(self._slots.of(message), error)
        elif error.code() == KafkaError._FATAL:  # its `fatal()` is False when it comes out of `poll`
            raise LaneError(error.str())
        else:
            log.warning("lane %s: %s", self._writer, error.str())

    def stop(self, slot: int, error: KafkaError) -> None:
        """Stop reading a partition whose offset is out of range. It is never reset; the heartbeat reports it."""
        self._stopped[slot] = f"{self.name(slot)} stopped: {error.str()}"
        log.error("lane %s: %s", self._writer, self._stopped[slot])
        self._consumer.pause([self._slots.at(slot)])

    def hold_back(self, *, all_full: bool) -> None:
        """Pause partitions whose window has reached its limit, or all of them; resume each at half of its limit."""
        most, most_bytes = self._most
        for slot in self._owned:
            window = self.windows.get(slot)
            span, size = (window.span, window.bytes) if window is not None else (0, 0)
            if slot not in self._paused and (all_full or span >= most or size >= most_bytes):
                self._consumer.pause([self._slots.at(slot)])
                self._paused.add(slot)
            elif slot in self._paused and not all_full and span <= most // 2 and size <= most_bytes // 2:
                self._consumer.resume([self._slots.at(slot)])
                self._paused.discard(slot)

    def committed_note(self, slot: int) -> str:
        """Return the note committed with the slot's offset; "" if the broker does not respond within NOTE_NOW_S."""
        try:
            return self._read_note(slot, NOTE_NOW_S) or ""
        except KafkaException:
            return ""

    def _note_of(self, slot: int) -> str:
        """Return the note committed with the slot's offset. Raises LaneError if the broker does not answer."""
        for _ in range(NOTE_TRIES):
            self._pat()
            try:
                note = self._read_note(slot, NOTE_S)
            except KafkaException as exc:
                log.warning("lane %s: could not read the note of %s: %s", self._writer, self.name(slot), exc)
                continue
            if note is not None:
                return note
        raise LaneError(f"could not read the committed offset of {self.name(slot)}")

    def _read_note(self, slot: int, timeout_s: float) -> str | None:
        """Return the committed note; None for an error of this partition. Raises KafkaException."""
        (committed,) = self._consumer.committed([self._slots.at(slot)], timeout=timeout_s)
        return str(committed.metadata or "") if committed.error is None else None


def buffered_bytes(message: Message) -> int:
    """Return the memory that a message holds: body and headers, as either may be large. A hot path."""
    size = len(message)
    for _, value in message.headers() or ():  # decoded once: later calls return the same list
        size += len(value or b"")
    return size
