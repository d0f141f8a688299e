"""Backlog of a replay: copies that wait for their destinations. It decides when the next job may start, and its rate.

Copies wait in the same partitions of egress as new events, so a queue of copies would delay these. Pure.
"""

import math
from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct, field

from dataplane.names import PartitionKey

MOST_JOBS: Final = 2  # whose copies may wait: one that is being delivered, and one that is being written
UNKNOWN_S: Final = 30.0  # a partition without a known committed offset counts as passed after this
QUEUE_S: Final = 1.0  # longest queue of a destination that keeps pace; lanes commit every 0.2 s
SHRINK: Final = 0.9  # of the measured rate, so that the queue gets shorter
GROW: Final = 1.1  # the destination may have become faster


class WrittenJob(Struct, frozen=True):
    """Copies that one job has written.

    ends:     by partition, the offset after the job's last record
    units:    number of copies
    took_s:   duration of the job
    ended_s:  end of the job; monotonic clock
    diverted: `ends` are of the slow lane's topic: transmit lanes have moved the copies there
    """

    ends: Mapping[PartitionKey, int]
    units: int
    took_s: float
    ended_s: float
    diverted: bool = False

    def left(self, committed: Mapping[PartitionKey, int], now_s: float) -> int:
        """Return how many copies no lane has passed, at most; records of others in between count, too."""
        is_due = now_s - self.ended_s < UNKNOWN_S
        unknown = self.units if is_due and any(place not in committed for place in self.ends) else 0
        known = sum(max(0, end - committed[place]) for place, end in self.ends.items() if place in committed)
        return min(self.units, unknown + known)


class CopyBacklog(Struct):
    """Backlog of one replay in one driver; a new driver begins with an empty one.

    jobs:       whose copies have not been passed, oldest first
    pace_per_s: rate that the destinations can take, as far as it is known
    left:       copies that no lane had passed when the newest job started, at `began_s`
    committed:  offsets of the lanes, as they were when `passed` was called last
    waits_s:    since when the next job has waited; 0 if it does not wait
    """

    jobs: list[WrittenJob] = field(default_factory=list)
    pace_per_s: float = math.inf
    left: int = 0
    began_s: float = 0.0
    committed: Mapping[PartitionKey, int] = {}
    waits_s: float = 0.0

    @property
    def is_full(self) -> bool:
        """True if no job may start until the oldest one has been passed."""
        return len(self.jobs) >= MOST_JOBS

    def passed(self, committed: Mapping[PartitionKey, int], now_s: float) -> list[WrittenJob]:
        """Remove the jobs that lanes have passed, and return them; a later job is not passed before an earlier one."""
        count, self.committed = 0, committed
        while count < len(self.jobs) and not self.jobs[count].left(committed, now_s):
            count += 1
        found, self.jobs = self.jobs[:count], self.jobs[count:]
        return found

    def begin_job(self, now_s: float, rate_per_s: float) -> float:
        """Return the rate of the job that starts now, at most `rate_per_s`.

        If the copies of the last job wait for more than QUEUE_S, it is less than what the destinations have taken since
        that job started. Otherwise it grows again with each job.
        """
        left = sum(job.left(self.committed, now_s) for job in self.jobs)
        newest = self.jobs[-1] if self.jobs else None
        if newest is not None and left * newest.took_s > QUEUE_S * newest.units:
            taken = max(0, self.left + newest.units - left)
            self.pace_per_s = max(1.0, SHRINK * taken / max(now_s - self.began_s, newest.took_s))
        else:
            self.pace_per_s *= GROW
        if self.pace_per_s >= rate_per_s:
            self.pace_per_s = math.inf
        self.left, self.began_s, self.waits_s = left, now_s, 0.0
        return min(rate_per_s, self.pace_per_s)

    def wait(self, now_s: float) -> float:
        """Return for how many seconds the next job has waited."""
        self.waits_s = self.waits_s or now_s
        return now_s - self.waits_s


def slow_reason(destinations: Collection[str]) -> str:
    """Return the reason why a replay waits for its destinations, for people."""
    names = sorted(destinations)
    which = f"destination {names[0]}" if len(names) == 1 else f"one of the destinations {', '.join(names)}"
    return f"waits for {which}, which is slower than the replay"
