"""What a group of lanes did between two looks, from two samples of counters that only grow. Pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any

from msgspec import Struct


class LaneClock(Struct, frozen=True):
    """A lane's process and the CPU seconds that it had used when it said so; another process counts anew."""

    pid: int
    at_s: float
    cpu_s: float


class Sample(Struct, frozen=True):
    """Counters of one group at one moment.

    came:    where its input topics end, all partitions together
    settled: where its group has committed, likewise
    """

    at_s: float
    lanes: dict[str, LaneClock]
    came: int
    settled: int


class Figure(Struct, frozen=True):
    """A group between two samples. `cpu`: cores, all lanes together; `came`, `settled`: messages a second."""

    at_s: float
    span_s: float
    lanes: int
    cpu: float
    came: float
    settled: float
    backlog: int


def clock_of(at: datetime, body: Mapping[str, Any]) -> LaneClock:
    """What a lane's heartbeat of that moment says of its process."""
    return LaneClock(body["pid"], at.timestamp(), body["cpu_s"])


def figures_of(samples: Iterable[Sample]) -> list[Figure]:
    """A figure for each pair of neighbours, in order of time."""
    ordered = sorted(samples, key=lambda sample: sample.at_s)
    return [_figure(old, new) for old, new in pairwise(ordered) if new.at_s > old.at_s]


def _figure(old: Sample, new: Sample) -> Figure:
    span_s = new.at_s - old.at_s
    return Figure(
        at_s=new.at_s,
        span_s=span_s,
        lanes=len(new.lanes),
        cpu=sum(_cores(old.lanes.get(name), clock) for name, clock in new.lanes.items()),
        came=max(0, new.came - old.came) / span_s,
        settled=max(0, new.settled - old.settled) / span_s,
        backlog=max(0, new.came - new.settled),
    )


def _cores(old: LaneClock | None, new: LaneClock) -> float:
    """CPU of a lane between two of its heartbeats. What a process that is new used before is nobody's measure."""
    if old is None or old.pid != new.pid or new.at_s <= old.at_s:
        return 0.0
    return max(0.0, new.cpu_s - old.cpu_s) / (new.at_s - old.at_s)
