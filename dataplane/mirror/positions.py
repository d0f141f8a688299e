"""Offsets of copies, delays of topics, and consistent cuts. Pure."""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from dataplane.names import PartitionKey

Ends = Mapping[PartitionKey, int]  # the offset after the last record of each partition
_SECOND_US: Final = 1_000_000


class GroupOffset(NamedTuple):
    """Committed offset of a group, negative if there is none. `metadata`: as the group wrote it, such as a query's."""

    offset: int
    metadata: str = ""


OffsetsOfGroup = Mapping[PartitionKey, GroupOffset]
Committed = Mapping[str, OffsetsOfGroup]  # by group


class MirrorError(Exception):
    """The mirror cannot continue from here; it begins a new session after a pause."""


class DivergedError(MirrorError):
    """The standby cluster has other records than the active one: a person must act (docs/region-mirror.md)."""


class PartitionCopy:
    """One partition: the offset up to which the standby cluster is known to have the active cluster's records.

    is_exact: copies have the offsets of their originals. Each delivery report confirms it; a record at another offset
              raises DivergedError, from which on nothing is copied
    stored:   offset of the active cluster; everything below it is on the standby cluster
    """

    __slots__ = ("_in_flight", "copied", "error", "is_exact", "place", "stored", "taken")

    def __init__(self, place: PartitionKey, offset: int, *, is_exact: bool) -> None:
        self.place, self.is_exact = place, is_exact
        self.stored = self.taken = offset
        self.copied = 0  # delivery reports without an error
        self.error = ""
        self._in_flight: deque[int] = deque()  # source offsets, in the order of their reports

    def take(self, offset: int) -> int:
        """Note that the record at `offset` is handed to the producer next; return how many fillers come before it.

        Only retention leaves gaps in topics that are copied exactly. Raises DivergedError for a record that was taken.
        """
        gap = offset - self.taken
        if gap < 0:
            raise DivergedError(f"{self.place[0]} [{self.place[1]}]: offset {offset} was read twice")
        if self.is_exact:
            self._in_flight.extend(range(self.taken, offset))
        self._in_flight.append(offset)
        self.taken = offset + 1
        return gap if self.is_exact else 0

    def reported(self, offset: int) -> None:
        """Note that the next record in flight is stored at this offset of the standby cluster."""
        source = self._in_flight.popleft()
        if self.error:
            return
        if self.is_exact and offset != source:
            self.error = f"{self.place[0]} [{self.place[1]}]: offset {source} was stored as {offset}"
            return
        self.stored = source + 1
        self.copied += 1


class TopicDelay:
    """Delay of one topic: messages behind, and the time since which the standby cluster may lack some.

    A record is mirrored at an unknown time after it was stored, so the delay is measured by ends: all that the active
    cluster had at the time of a look is mirrored once the copies have reached the ends of that look.
    """

    def __init__(self, now_us: int) -> None:
        self.behind = 0
        self.complete_us = 0  # everything stored before this time is mirrored; 0: not known yet
        self._began_us = now_us
        self._looked: tuple[int, Ends] | None = None

    def look(self, now_us: int, ends: Ends, stored: Ends) -> None:
        """Note the ends, asked at `now_us`, and the offsets up to which copies were stored after that."""
        self.behind = sum(max(0, end - stored.get(place, 0)) for place, end in ends.items())
        if self._looked is not None and has_reached(stored, self._looked[1]):
            self.complete_us, self._looked = self._looked[0], None
        if not self.behind:
            self.complete_us, self._looked = now_us, None
        elif self._looked is None:
            self._looked = now_us, ends

    def behind_s(self, now_us: int) -> float:
        """Return the seconds since which the standby cluster may lack records; since the start if it never had all."""
        return max(0, now_us - (self.complete_us or self._began_us)) / _SECOND_US


class ConsistentCut(Struct, frozen=True):
    """Committed offsets, and ends of all topics that were asked after them.

    What lies below a committed offset is settled: its outputs were stored before the commit, so below these ends. Once
    the copies have reached the ends, lanes may begin at the committed offsets: none of their outputs is missing.
    """

    committed: Committed
    ends: Ends
    at_us: int

    def is_complete(self, stored: Ends) -> bool:
        """Return True if all records below the ends are copied."""
        return has_reached(stored, self.ends)


def has_reached(stored: Ends, ends: Ends) -> bool:
    """Return True if copies have reached these ends; a partition that is unknown has reached nothing."""
    return all(stored.get(place, 0) >= end for place, end in ends.items())


def new_offsets(cut: Committed, known: Committed) -> dict[str, dict[PartitionKey, GroupOffset]]:
    """Return those offsets of a cut, by group, that the standby cluster does not have; none is negative."""
    found: dict[str, dict[PartitionKey, GroupOffset]] = {}
    for group, offsets in cut.items():
        before = known.get(group, {})
        changed = {place: one for place, one in offsets.items() if one.offset >= 0 and one != before.get(place)}
        if changed:
            found[group] = changed
    return found


def start_of(place: PartitionKey, *, begin: int, end: int, standby_end: int) -> int:
    """Return how many fillers a partition needs before the first record that can still be read.

    begin, end: first offset, and offset after the last record, on the active cluster

    Raises DivergedError if the standby cluster has more records than the active one.
    """
    if standby_end > end:
        raise DivergedError(
            f"{place[0]} [{place[1]}]: the standby cluster has records up to {standby_end}, the active one up to {end}"
        )
    return max(0, begin - standby_end)


def by_topic(offsets: Mapping[PartitionKey, int], names: Iterable[str]) -> dict[str, dict[int, int]]:
    """Return offsets by partition, of these topics."""
    found: dict[str, dict[int, int]] = {name: {} for name in names}
    for (topic, partition), offset in offsets.items():
        if topic in found:
            found[topic][partition] = offset
    return found
