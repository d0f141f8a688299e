"""A group of lanes as a queue: traffic in by the second, as much out as its lanes can handle, and an autoscaler.

It models the group alone. Tests with real lanes show how they start, share partitions and drain.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import ceil
from typing import Final

from msgspec import Struct, field

from controlplane.autoscaler.decide import IN_WINDOW_S, DecisionMemory, LaneGroup, ScaleDecision, ScalePolicy, decide
from controlplane.autoscaler.figures import GroupRates, GroupSample, LaneClock, figures_of

TICK_S: Final = 5
START_S: Final = 8  # a new lane: its process and clients start, and it joins the group
REBALANCE_S: Final = 3  # rebalance: partitions change lanes, and half of them are paused meanwhile
IDLE_CPU: Final = 0.03
MINUTE_S: Final = 60
MOST_LANES: Final = 64


class Limits(Struct, frozen=True):
    """Limits of lanes. A lane that waits for a lock uses at most `lane_cpu`; `outside` is the limit of destinations.

    outside: messages a second that destinations accept from all lanes together, by second
    """

    cost_s: float = 0.001  # CPU seconds per message
    lane_cpu: float = 1.0
    outside: Callable[[int], float] = lambda _second: float("inf")


class Run(Struct):
    """Results of a run: lag of each message that left, by minute; seconds of all lanes; every change."""

    lags: dict[int, list[tuple[float, float]]] = field(default_factory=dict)  # minute -> (lag, messages)
    lane_s: int = 0
    changes: list[tuple[int, int, str]] = field(default_factory=list)  # second, lanes, why

    @property
    def worker_minutes(self) -> float:
        """Return lanes times minutes."""
        return self.lane_s / MINUTE_S

    def within(self, goal_s: float) -> float:
        """Return the share of minutes whose p95 was within the goal."""
        kept = [p95(lags) <= goal_s for lags in self.lags.values()]
        return sum(kept) / len(kept)

    def reversals(self, first: int) -> list[int]:
        """Return the seconds of reversals: a scale-in after a scale-out, or the other way round."""
        counts = [first, *(lanes for _, lanes, _ in self.changes)]
        outs = [after > before for before, after in pairwise(counts)]
        times = [second for second, _, _ in self.changes[1:]]
        return [time for (old, new), time in zip(pairwise(outs), times, strict=True) if old != new]


def p95(lags: Sequence[tuple[float, float]]) -> float:
    """Return the 95th percentile of (lag, messages) pairs."""
    left = 0.95 * sum(messages for _, messages in lags)
    for lag, messages in sorted(lags):
        left -= messages
        if left <= 0:
            return lag
    return 0.0


class Lanes:
    """Group of lanes that empty one queue."""

    def __init__(self, count: int, limits: Limits) -> None:
        self._limits = limits
        self._ready = [0] * count  # the second from which each lane is ready
        self._cpu = [0.0] * count
        self._rebalance_until = 0
        self._queue: deque[list[float]] = deque()  # waiting (second, messages)
        self._pids = list(range(count))
        self.came = self.settled = 0.0

    def resize(self, count: int, now: int) -> None:
        """Resize the group: new lanes need time to start, the highest stop at once."""
        self._rebalance_until = now + (START_S if count > len(self._ready) else 0) + REBALANCE_S
        while len(self._ready) < count:
            self._ready.append(now + START_S)
            self._cpu.append(0.0)
            self._pids.append(now * 100 + len(self._ready))
        del self._ready[count:], self._cpu[count:], self._pids[count:]

    def second(self, now: int, messages: float) -> list[tuple[float, float]]:
        """Simulate one second; return (lag, messages) of what left."""
        self.came += messages
        self._queue.append([now, messages])
        working = [index for index, ready in enumerate(self._ready) if now >= ready]
        share = 0.5 if now < self._rebalance_until and now >= self._rebalance_until - REBALANCE_S else 1.0
        most = share * min(len(working) * self._limits.lane_cpu / self._limits.cost_s, self._limits.outside(now))
        left = self._leave(now, most)
        done = sum(count for _, count in left)
        self.settled += done
        for index in working:
            self._cpu[index] += IDLE_CPU + done * self._limits.cost_s / len(working)
        return left

    def _leave(self, now: int, most: float) -> list[tuple[float, float]]:
        left: list[tuple[float, float]] = []
        while self._queue and most > 1e-9:
            second, waiting = self._queue[0]
            taken = min(waiting, most)
            most -= taken
            left.append((now - second, taken))
            if taken == waiting:
                self._queue.popleft()
            else:
                self._queue[0][1] = waiting - taken
        return left

    def sample(self, now: int) -> GroupSample:
        """Return the figures that heartbeats and Kafka would give."""
        lanes = {
            f"process-{index}": LaneClock(self._pids[index], now, round(self._cpu[index], 2))
            for index, ready in enumerate(self._ready)
            if now >= ready
        }
        return GroupSample(now, lanes, int(self.came), int(self.settled))


def run_fixed(traffic: Sequence[float], count: int, limits: Limits) -> Run:
    """Run with the same number of lanes all the time."""
    return run_scaled(
        traffic, count, limits, ScalePolicy(count, count), lambda group: ScaleDecision(count, "", group.memory)
    )


def best_fixed(traffic: Sequence[float], limits: Limits, goal_s: float, share: float) -> Run:
    """Return the run of the smallest fixed group that meets the goal in this share of all minutes."""
    least = ceil(sum(traffic) / len(traffic) * limits.cost_s)
    runs = (run_fixed(traffic, count, limits) for count in range(least, MOST_LANES))
    return next(run for run in runs if run.within(goal_s) >= share)


def run_scaled(
    traffic: Sequence[float],
    first: int,
    limits: Limits,
    policy: ScalePolicy,
    decide: Callable[[LaneGroup], ScaleDecision] = decide,
) -> Run:
    """Run with as many lanes as the autoscaler decides, starting with `first`."""
    lanes, run, count, memory = Lanes(first, limits), Run(), first, DecisionMemory()
    sample, figures = lanes.sample(0), deque[GroupRates]()
    for now, messages in enumerate(traffic):
        run.lags.setdefault(now // MINUTE_S, []).extend(lanes.second(now, messages))
        run.lane_s += count
        if now % TICK_S:
            continue
        before, sample = sample, lanes.sample(now)
        figures.extend(figures_of([before, sample]))
        while figures and figures[0].at_s <= now - IN_WINDOW_S:
            figures.popleft()
        decision = decide(LaneGroup(now, count, policy, memory, figures))
        memory = decision.memory
        if decision.lanes != count:
            count = decision.lanes
            lanes.resize(count, now)
            run.changes.append((now, count, decision.why))
    return run
