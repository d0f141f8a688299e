"""Search for the events of a pipe whose body meets a condition: a bounded scan of the ingest topic, newest first.

Bodies are only in Kafka, so there is no index of them. The ledger names the offsets of the pipe's events in each
minute; these are read from the broker in batches, and a sandbox worker evaluates the condition. A search ends at the
first of its limits and returns a cursor that continues it.
"""

import re
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from django.db.models import Sum
from pyroaring import BitMap64

from dataplane.ledger.facts import ACKED, INGEST, Fact
from dataplane.ledger.units import format_position, parse_position, place_of, position_of
from dataplane.plan.masked_fields import hides_all
from dataplane.spec import MaskStep
from mgmt import sandbox
from mgmt.cells.queries.cells import topic_at
from mgmt.ledger.queries.bucket_range import BucketRange
from mgmt.messages.queries.event_masks import EventMasks
from mgmt.messages.queries.message_search import FoundMessage
from mgmt.messages.queries.readers import BrokersUnavailableError
from mgmt.messages.queries.records import FAR, SHOWN_BYTES, StoredRecord, read_within
from mgmt.models import FactRow, Pipe
from mgmt.sandbox import FilterCopy, SandboxRefused, TooManyAtOnce

SEARCH_S: Final = 3.0  # wall time of one request
MOST_SEARCHED: Final = 20_000  # events of one request
MOST_READ_BYTES: Final = 64 * 1024 * 1024  # of their bodies
MOST_EVENT_BYTES: Final = SHOWN_BYTES  # of one event; larger ones are not searched
MOST_FOUND: Final = 200
BATCH: Final = 500  # events that are read at once
BATCH_RECORDS: Final = 30_000  # records that a batch reads through, those of other pipes included
JOB: Final = 200  # events of one sandbox job
JOB_BYTES: Final = 2 * 1024 * 1024
_CURSOR: Final = re.compile(r"(\d{1,9})-(\d{1,4}-\d{1,5}-\d{1,13})")
_NOT_EVALUATED: Final = object()  # result of an event that was not evaluated in time
_running: Final[set[str]] = set()
_lock: Final = threading.Lock()


class SearchCursor(NamedTuple):
    """The last event that was searched: the search continues with earlier positions of its minute."""

    bucket: int
    position: int

    def __str__(self) -> str:
        return f"{self.bucket}-{format_position(self.position)}"


@dataclass(frozen=True)
class BodySearch:
    """Result of a search.

    found:    matching events, newest minute first, in a minute by partition and from the newest down
    searched: events whose body was compared
    skipped:  events that were passed over: no longer kept, too large, or hidden by a mask of the whole event
    total:    events of the whole range
    left:     events of the range that this search and those before it have not reached
    cursor:   where to continue; None if the whole range is searched
    stopped:  why the search ended early, apart from its limits; "" otherwise
    """

    found: Sequence[FoundMessage]
    searched: int
    skipped: int
    total: int
    left: int
    cursor: SearchCursor | None
    stopped: str = ""


def parse_search_cursor(text: str) -> SearchCursor | None:
    """Parse a cursor; None for any other text."""
    parts = _CURSOR.fullmatch(text)
    try:
        return SearchCursor(int(parts[1]), parse_position(parts[2])) if parts else None
    except ValueError:
        return None


def search_bodies(
    pipe: Pipe, where: str, *, span: BucketRange, after: SearchCursor | None = None, most: int = MOST_FOUND, owner: str
) -> BodySearch:
    """Return the pipe's events of a time range whose body meets the condition `where`, up to `most`.

    Values that the pipe masks are masked before they are compared. `owner`: the user, who may run one search at a time.
    Raises FilterRefusedError for an invalid condition; SandboxRefused, BrokersUnavailableError if nothing was searched.
    """
    with _alone(owner):
        sandbox.filter_copies(where, [], owner=owner)
        minutes = _Minutes(pipe.id, span, after)
        scan = _Scan(pipe, where, most, owner)
        scan.run(minutes.positions())
    cursor = scan.reached if scan.is_cut or not minutes.are_all_read else None
    left = minutes.left_after(scan.reached) if cursor else 0
    return BodySearch(scan.found, scan.searched, scan.skipped, minutes.total, left, cursor, scan.stopped)


@contextmanager
def _alone(owner: str) -> Iterator[None]:
    """Let one search of an owner run at a time in this process."""
    with _lock:
        if owner in _running:
            raise TooManyAtOnce("You have a search in progress. Wait until it is done.")
        _running.add(owner)
    try:
        yield
    finally:
        with _lock:
            _running.discard(owner)


class _Minutes:
    """Positions of the accepted events of a range, from the ledger."""

    def __init__(self, pipe_id: str, span: BucketRange, after: SearchCursor | None) -> None:
        self._after = after
        self._rows = FactRow.objects.filter(
            pipe_id=pipe_id, bucket__range=(span.first, span.last), node=INGEST, fact=Fact.SENT, detail=ACKED
        )
        counts = self._rows.values("bucket").annotate(n=Sum("count")).order_by("-bucket")
        self._counts: dict[int, int] = dict(counts.values_list("bucket", "n"))
        self.total = sum(self._counts.values())
        self._known: dict[int, BitMap64] = {}
        self.are_all_read = True

    def positions(self) -> Iterator[SearchCursor]:
        """Yield the positions after the cursor: the newest minute first, in a minute from the highest down."""
        self._known = self._read()
        for bucket, positions in sorted(self._known.items(), reverse=True):
            is_first = self._after is not None and bucket == self._after.bucket
            end = _below(positions, self._after.position) if self._after and is_first else len(positions)
            for index in range(end - 1, -1, -1):
                yield SearchCursor(bucket, positions[index])

    def left_after(self, reached: SearchCursor | None) -> int:
        """Return the number of events that come after this one."""
        if reached is None:
            return self.total
        earlier = sum(count for bucket, count in self._counts.items() if bucket < reached.bucket)
        return earlier + _below(self._known[reached.bucket], reached.position)

    def _read(self) -> dict[int, BitMap64]:
        """Return the positions of as many minutes as one search can reach."""
        buckets: list[int] = []
        reached = 0
        for bucket, count in self._counts.items():
            if self._after is not None and bucket > self._after.bucket:
                continue
            buckets.append(bucket)
            # The count of the cursor's minute says nothing of the events that are left in it.
            reached += count if self._after is None or bucket < self._after.bucket else 0
            if reached > MOST_SEARCHED:
                self.are_all_read = False
                break
        found: dict[int, BitMap64] = defaultdict(BitMap64)
        for bucket, positions in self._rows.filter(bucket__in=buckets).values_list("bucket", "positions"):
            found[bucket] |= BitMap64.deserialize(bytes(positions))
        return found


class _Scan:
    """One pass over positions, in batches, until the first limit. `reached`: the last event that was passed."""

    def __init__(self, pipe: Pipe, where: str, most: int, owner: str) -> None:
        self.found: list[FoundMessage] = []
        self.searched = self.skipped = 0
        self.reached: SearchCursor | None = None
        self.is_cut, self.stopped = False, ""
        self._pipe, self._where, self._most, self._owner = pipe, where, most, owner
        self._deadline_s = time.monotonic() + SEARCH_S
        self._bytes = 0
        self._masks = EventMasks()
        self._steps: dict[int, tuple[MaskStep, ...]] = {}
        self._topics: dict[int, str] = {}

    def run(self, positions: Iterator[SearchCursor]) -> None:
        """Search until the range or a limit ends. Raises if not one event was passed."""
        while batch := list(_batch(positions)):
            try:
                done = self._search(batch)
            except (SandboxRefused, BrokersUnavailableError) as exc:
                if self.reached is None:
                    raise
                self.stopped, done = str(exc).removesuffix("."), False
            if not done or self._is_over():
                self.is_cut = not done or next(positions, None) is not None
                return

    def _is_over(self) -> bool:
        passed = self.searched + self.skipped
        return (
            passed + BATCH > MOST_SEARCHED
            or self._bytes > MOST_READ_BYTES
            or len(self.found) >= self._most
            or time.monotonic() > self._deadline_s
        )

    def _search(self, batch: Sequence[SearchCursor]) -> bool:
        """Search a batch in order; return False if a limit came before its end."""
        records, unread = self._read(batch)
        readable = [one for one in batch if one.position in records]
        results = self._evaluated(
            [records[one.position] for one in readable if self._is_searchable(records[one.position])]
        )
        for one in batch:
            record = records.get(one.position)
            if one.position in unread and self.reached is None:
                raise BrokersUnavailableError
            if one.position in unread or len(self.found) >= self._most:
                return False
            if record is None or not self._is_searchable(record):
                self.skipped += 1
            else:
                passes = next(results, _NOT_EVALUATED)
                if passes is _NOT_EVALUATED:
                    return False
                self.searched += 1
                if passes:
                    self.found.append(FoundMessage(self._pipe.id, one.position, record.meta))
            self.reached = one
        return True

    def _read(self, batch: Sequence[SearchCursor]) -> tuple[Mapping[int, StoredRecord], set[int]]:
        """Return the records by position, and the positions that were not read in time."""
        offsets: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for place in (place_of(one.position) for one in batch):
            offsets[place.generation][place.partition].append(place.offset)
        records: dict[int, StoredRecord] = {}
        unread: set[int] = set()
        for generation, due in offsets.items():
            topic = self._topic(generation)
            if not topic:
                continue
            wait_s = max(self._deadline_s - time.monotonic(), 0.1)
            found, late = read_within(
                topic, due, pipes=(self._pipe.id,), most_bytes=MOST_EVENT_BYTES + 1, wait_s=wait_s
            )
            records |= {position_of(generation, one.partition, one.offset): one for one in found}
            unread |= {position_of(generation, partition, one) for partition, some in late.items() for one in some}
        self._bytes += sum(len(one.body) for one in records.values())
        return records, unread

    def _topic(self, generation: int) -> str:
        if generation not in self._topics:
            topic = topic_at(self._pipe.id, "ingest", generation)
            self._topics[generation] = topic.name if topic else ""
        return self._topics[generation]

    def _is_searchable(self, record: StoredRecord) -> bool:
        masks = self._masks.of(record.meta.pipe, record.meta.revision)
        return record.body_bytes <= MOST_EVENT_BYTES and not hides_all(masks)

    def _evaluated(self, records: Sequence[StoredRecord]) -> Iterator[bool | None]:
        """Yield the result of the condition for each record, in order; fewer if the time has run out."""
        copies = [self._copy(one) for one in records]
        done = 0
        while done < len(copies):
            if done and time.monotonic() > self._deadline_s:
                return
            passes = sandbox.filter_copies(self._where, list(_job(copies[done:])), owner=self._owner)
            done += len(passes)
            yield from passes

    def _copy(self, record: StoredRecord) -> FilterCopy:
        revision = record.meta.revision
        if revision not in self._steps:
            masks = sorted(self._masks.of(record.meta.pipe, revision))
            self._steps[revision] = tuple(MaskStep(".".join(path), how) for path, how in masks)
        return FilterCopy(record.meta, INGEST, "", record.body, self._steps[revision])


def _below(positions: BitMap64, position: int) -> int:
    """Return the number of positions below this one."""
    return int(positions.rank(position - 1)) if position else 0


def _batch(positions: Iterator[SearchCursor]) -> Iterator[SearchCursor]:
    """Yield the next events that are read together: limited in number, and in records that lie between them."""
    cost = 0
    last: dict[tuple[int, int], int] = {}  # offset by generation and partition
    for one in islice(positions, BATCH):
        place = place_of(one.position)
        partition = (place.generation, place.partition)
        cost += min(FAR, last.get(partition, place.offset + FAR) - place.offset)
        last[partition] = place.offset
        yield one
        if cost >= BATCH_RECORDS:
            return


def _job(copies: Sequence[FilterCopy]) -> Iterator[FilterCopy]:
    """Yield the first events that fit one sandbox job; at least one."""
    size = 0
    for one in islice(copies, JOB):
        size += len(one.body)
        if size > JOB_BYTES and size > len(one.body):
            return
        yield one
