"""Rates of a group of lanes between two samples of counters that only grow. Pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any

from msgspec import Struct


class LaneClock(Struct, frozen=True):
    """CPU seconds that a lane's process had used at a heartbeat; a new process starts from 0."""

    pid: int
    at_s: float
    cpu_s: float


class GroupSample(Struct, frozen=True):
    """Counters of one group at one moment.

    came:    sum of the end offsets of its input topics' partitions
    settled: sum of the offsets that its consumer group has committed there
    """

    at_s: float
    lanes: dict[str, LaneClock]
    came: int
    settled: int


class GroupRates(Struct, frozen=True):
    """A group between two samples. `cpu`: cores, all lanes together; `came`, `settled`: messages a second."""

    at_s: float
    span_s: float
    lanes: int
    cpu: float
    came: float
    settled: float
    backlog: int


def clock_of(at: datetime, body: Mapping[str, Any]) -> LaneClock:
    """Return the process clock of a lane from its heartbeat's time and body."""
    return LaneClock(body["pid"], at.timestamp(), body["cpu_s"])


def figures_of(samples: Iterable[GroupSample]) -> list[GroupRates]:
    """Return the rates between each two neighbouring samples, in order of time."""
    ordered = sorted(samples, key=lambda sample: sample.at_s)
    return [_figure(old, new) for old, new in pairwise(ordered) if new.at_s > old.at_s]


def _figure(old: GroupSample, new: GroupSample) -> GroupRates:
    span_s = new.at_s - old.at_s
    return GroupRates(
        at_s=new.at_s,
        span_s=span_s,
        lanes=len(new.lanes),
        cpu=sum(_cores(old.lanes.get(name), clock) for name, clock in new.lanes.items()),
        came=max(0, new.came - old.came) / span_s,
        settled=max(0, new.settled - old.settled) / span_s,
        backlog=max(0, new.came - new.settled),
    )


def _cores(old: LaneClock | None, new: LaneClock) -> float:
    """Return the cores that a lane used between two heartbeats; 0 for a new process, whose earlier use is unknown."""
    if old is None or old.pid != new.pid or new.at_s <= old.at_s:
        return 0.0
    return max(0.0, new.cpu_s - old.cpu_s) / (new.at_s - old.at_s)
