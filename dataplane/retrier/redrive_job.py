"""A redrive job: which offsets of which partitions to return, in order.

They return to retry-out; messages that were held before the steps, or died in them, return to the ingest topic.

Pure: the caller reports each record that it has read or stored.
"""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec
from pyroaring import BitMap64

from dataplane.ledger.deadletter import DeadLetterReason, can_run_again, without_dead_letter_headers
from dataplane.ledger.facts import Fact, FactKey
from dataplane.ledger.meta import META_HEADER, Headers, MessageMeta, encode_meta
from dataplane.names import ENTRANCE, PartitionKey, transmit_node
from dataplane.retrier.release_pacer import DestinationKey
from dataplane.retrier.retry_messages import without_leave_header
from dataplane.runtime.lanes.window import AckWindow

What = Literal["release", "redrive", "ahead"]
FAR: Final = 10_000  # offsets; a wider gap is skipped by a seek instead of read


class RedriveJob:
    """State of a job. Pass the records to `wants` in their order; each wanted one is then stored or skipped.

    wanted:  offsets to return, by partition, in the order of the partitions
    reached: offset by partition below which an earlier lane has completed the job
    through: send although the destination is held
    """

    def __init__(
        self,
        name: DestinationKey,
        what: What,
        wanted: Mapping[PartitionKey, BitMap64],
        reached: Mapping[PartitionKey, int],
        *,
        through: bool = False,
    ) -> None:
        self.name = name
        self.what = what
        self.through = through
        self.total = sum(len(offsets) for offsets in wanted.values())
        self._wanted = dict(wanted)
        self._ends = {place: offsets.max() + 1 for place, offsets in wanted.items() if offsets}
        self._left = {place: _from_offset(offsets, reached.get(place, 0)) for place, offsets in wanted.items()}
        self._skipped = {place: BitMap64() for place in wanted}  # deleted, or not for this job
        self._windows = {place: AckWindow(reached.get(place, 0)) for place in wanted}

    def next_offset(self) -> tuple[PartitionKey, int] | None:
        """Return the partition and offset to read next; None when everything has been read."""
        for place, offsets in self._left.items():
            if offsets:
                return place, offsets.min()
        return None

    def wants(self, place: PartitionKey, offset: int) -> bool:
        """Return True if the record at this offset is wanted; skip lower wanted offsets, whose records are deleted."""
        left = self._left[place]
        while left and left.min() < offset:
            deleted = left.min()
            left.remove(deleted)
            self._skipped[place].add(deleted)
        if offset not in left:
            return False
        left.remove(offset)
        self._windows[place].take(offset)
        return True

    def skip_below(self, place: PartitionKey, offset: int) -> None:
        """Skip the wanted offsets below a low watermark: their records are deleted."""
        left = self._left[place]
        self._left[place] = _from_offset(left, offset)
        self._skipped[place] |= left - self._left[place]

    def ended(self, place: PartitionKey) -> None:
        """Skip all that is still wanted of a partition that was read to its end: these records are gone."""
        self._skipped[place] |= self._left[place]
        self._left[place] = BitMap64()

    def stored(self, place: PartitionKey, offset: int) -> None:
        """Note that a wanted record is stored on its new topic."""
        self._windows[place].settle(offset)

    def skip(self, place: PartitionKey, offset: int) -> None:
        """Skip a wanted record that is not for this job: another destination's, or unreadable."""
        self._skipped[place].add(offset)
        self._windows[place].settle(offset)

    @property
    def in_flight(self) -> int:
        """Number of records that were read and are not stored yet."""
        return sum(window.unsettled for window in self._windows.values())

    @property
    def is_over(self) -> bool:
        """True when everything has been read, and stored or skipped."""
        return not any(self._left.values()) and not self.in_flight

    def reached(self) -> dict[PartitionKey, int]:
        """Return for each partition the offset below which all wanted offsets are completed."""
        return {place: self._reached(place, window) for place, window in self._windows.items()}

    def done_below(self, reached: Mapping[PartitionKey, int]) -> int:
        """Count the wanted offsets below `reached`."""
        return _count_below(self._wanted, reached)

    def skipped_below(self, reached: Mapping[PartitionKey, int]) -> int:
        """Count the offsets below `reached` that this lane has skipped; the ones above are read again after a kill."""
        return _count_below(self._skipped, reached)

    def _reached(self, place: PartitionKey, window: AckWindow) -> int:
        if window.unsettled or self._left[place]:
            return window.prefix
        return max(window.prefix, self._ends.get(place, 0))


def _count_below(offsets: Mapping[PartitionKey, BitMap64], reached: Mapping[PartitionKey, int]) -> int:
    return sum(found.rank(reached[place] - 1) for place, found in offsets.items() if reached.get(place))


def _from_offset(offsets: BitMap64, first: int) -> BitMap64:
    left = offsets.copy()
    left.remove_range(0, first)
    return left


def is_for(job: RedriveJob, meta: MessageMeta, why_dead: DeadLetterReason) -> bool:
    """Return True if a record belongs to the job.

    A redrive to a destination takes only messages that were dead-lettered at transmit; one without a destination takes
    those that ended in the pipe's steps. The node of `why_dead` is "" for a record that is not a dead letter.
    """
    if (meta.pipe, meta.destination) != job.name:
        return False
    if job.what != "redrive":
        return True
    return why_dead.node == transmit_node(meta.destination) if meta.destination else can_run_again(why_dead)


def returned_record(
    what: What, meta: MessageMeta, headers: Headers, *, through: bool = False, as_of: int = 0
) -> tuple[MessageMeta, Headers]:
    """Return the meta and the headers of a record that returns: the same id, and the next round if it is redriven.

    through: send although the destination is held
    as_of:   version of the destination's control record under which the record returns

    The round is counted from the record's own, so a repeated return makes the same unit, which transmit has settled. A
    held or dead message starts a new retry horizon; an early release keeps its horizon.
    """
    if what == "ahead":
        meta = msgspec.structs.replace(meta, paced=False, as_of=as_of)
    else:
        fresh = {"not_before_us": 0, "first_us": 0, "tried": 0, "asked_us": 0, "paced": False}
        meta = msgspec.structs.replace(meta, **fresh, through=through, as_of=as_of)
    if what == "redrive":
        meta = msgspec.structs.replace(meta, attempt=meta.attempt + 1, life=meta.attempt + 1)
    return meta, [(META_HEADER, encode_meta(meta)), *without_dead_letter_headers(without_leave_header(headers)[1:])]


def fact_of(what: What, meta: MessageMeta) -> FactKey:
    """Return the fact to report for a unit that was returned."""
    fact = Fact.REDRIVEN if what == "redrive" else Fact.RELEASED
    node = transmit_node(meta.destination) if meta.destination else ENTRANCE
    return FactKey(node, fact, str(meta.attempt), meta.child)
