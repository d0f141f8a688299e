"""Backlog of a replay: copies that wait for their destinations. It decides when the next job may start, and its rate.

Copies wait in the same partitions of egress as new events, so a queue of copies would delay these. Pure.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct, field

from dataplane.names import PartitionKey
from dataplane.spec import DestinationSpec, RemoteDestination

MOST_JOBS: Final = 2  # whose copies may wait: one that is being delivered, and one that is being written
UNKNOWN_S: Final = 30.0  # a partition without a known committed offset counts as passed after this
QUEUE_S: Final = 1.0  # longest queue before a destination that keeps pace; lanes commit every 0.2 s
SHRINK: Final = 0.9  # of the measured rate, so that the queue gets shorter
GROW: Final = 1.1  # the destination may have become faster
START_GROW: Final = 2.0  # until the first queue


class WrittenJob(Struct, frozen=True):
    """Copies that one job has written.

    ends:     by partition, the offset after the job's last record
    units:    number of copies
    ended_s:  end of the job; monotonic clock
    diverted: `ends` are of the slow lane's topic: transmit lanes have moved the copies there
    """

    ends: Mapping[PartitionKey, int]
    units: int
    ended_s: float
    diverted: bool = False

    def is_passed(self, committed: Mapping[PartitionKey, int], now_s: float) -> bool:
        """Return True if lanes have passed all of its copies, or if that has been unknown for UNKNOWN_S."""
        is_known = now_s - self.ended_s < UNKNOWN_S
        return all(end <= committed.get(place, -1 if is_known else end) for place, end in self.ends.items())

    def waiting_part(self, before: Mapping[PartitionKey, int], committed: Mapping[PartitionKey, int]) -> float:
        """Return the part of what its partitions had after `before` that still waits, as far as it is known.

        Other records are in between, so the part is of all records, not only of copies.
        """
        known = {place: end for place, end in self.ends.items() if place in before and place in committed}
        whole = sum(max(0, end - before[place]) for place, end in known.items())
        return sum(max(0, end - committed[place]) for place, end in known.items()) / whole if whole else 0.0


class CopyBacklog(Struct):
    """Backlog of one replay in one driver; a new driver begins with an empty one.

    jobs:       whose copies have not been passed, oldest first
    committed:  offsets of the lanes, as they were when `passed` was called last
    pace_per_s: rate that the destinations can take, as far as it is known; `start_pace` at first
    is_starting: no copies of the replay have had to wait so far
    before:     `committed` when the newest job started, at `began_s`; `left`: copies of earlier jobs that waited then
    taken:      copies of jobs that were settled since then
    waits_s:    since when the next job has waited; 0 if it does not wait
    """

    jobs: list[WrittenJob] = field(default_factory=list)
    committed: Mapping[PartitionKey, int] = {}
    pace_per_s: float = math.inf
    is_starting: bool = True
    before: Mapping[PartitionKey, int] = {}
    began_s: float = 0.0
    left: float = 0.0
    taken: int = 0
    waits_s: float = 0.0
    newest: WrittenJob | None = None

    @property
    def is_full(self) -> bool:
        """True if no job may start until the oldest one has been passed."""
        return len(self.jobs) >= MOST_JOBS

    def add(self, job: WrittenJob) -> None:
        """Add the job that has just ended."""
        self.jobs.append(job)
        self.newest = job

    def passed(self, committed: Mapping[PartitionKey, int], now_s: float) -> list[WrittenJob]:
        """Remove the jobs that lanes have passed, and return them; a later job is not passed before an earlier one."""
        count, self.committed = 0, committed
        while count < len(self.jobs) and self.jobs[count].is_passed(committed, now_s):
            count += 1
        found, self.jobs = self.jobs[:count], self.jobs[count:]
        return found

    def begin_job(self, now_s: float, rate_per_s: float) -> float:
        """Return the rate of the job that starts now, at most `rate_per_s`.

        If records that came after the start of the last job wait for more than QUEUE_S, or if this job had to wait, it
        is less than what the destinations have taken since then. Otherwise it grows with each job that wrote copies.
        """
        elapsed_s, rates = max(now_s - self.began_s, 1e-3), []
        if self.newest is not None:
            part = self.newest.waiting_part(self.before, self.committed)
            copies = self.left + self.newest.units
            if part * elapsed_s > QUEUE_S * (1 - part):
                rates.append((1 - part) * copies / elapsed_s)
            self.left = part * copies
        if self.waits_s:
            rates.append(self.taken / elapsed_s)
        if rates:
            self.pace_per_s, self.is_starting = max(1.0, SHRINK * min(rates)), False
        elif self.newest is not None:
            self.pace_per_s *= START_GROW if self.is_starting else GROW
        if self.pace_per_s >= rate_per_s:
            self.pace_per_s = math.inf
        self.newest, self.before, self.began_s = None, self.committed, now_s
        self.taken, self.waits_s = 0, 0.0
        return min(rate_per_s, self.pace_per_s)

    def interrupt(self, now_s: float) -> None:
        """Drop the measurement, because the replay is paused: the time of the pause is not that of its destinations."""
        self.newest, self.left, self.taken, self.waits_s, self.began_s = None, 0.0, 0, 0.0, now_s

    def wait(self, now_s: float) -> float:
        """Return for how many seconds the next job has waited."""
        self.waits_s = self.waits_s or now_s
        return now_s - self.waits_s


def start_pace(destinations: Iterable[DestinationSpec]) -> float:
    """Return the rate of a replay's first job, in units per second; infinite if no destination has a URL.

    It is one that an endpoint can take if each of its concurrent requests lasts up to a second: how much it takes is
    not known before the first copies.
    """
    return min((float(to.concurrency) for to in destinations if isinstance(to, RemoteDestination)), default=math.inf)


def slow_reason(destinations: Collection[str]) -> str:
    """Return the reason why a replay waits for its destinations, for people."""
    names = sorted(destinations)
    which = f"destination {names[0]}" if len(names) == 1 else f"one of the destinations {', '.join(names)}"
    return f"waits for {which}, which is slower than the replay"
