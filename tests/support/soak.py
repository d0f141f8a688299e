"""Figures of a long run: memory and CPU of each process over time, and the p95 of deliveries minute by minute."""

import contextlib
import math
import statistics
import threading
import time
from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import psutil

from loadgen.events import ACCEPTED
from localbox.demo.logs import read_received, read_sent
from tests.support.kill_schedule import STARTS_AGAIN, BoxProcesses

MINUTE_US: Final = 60_000_000
LEAST_SAMPLES: Final = 5
FIXED_WORK: Final = 200_000  # steps, about 20 ms
# Their children are processes of their own in the schedule, or applications that have their own names there.
WITHOUT_CHILDREN: Final = frozenset({"keeper", "jvm", "driver"})


class MemoryTrend(NamedTuple):
    """Linear regression of a process's memory over time. error_mb_per_h: standard error of the slope."""

    last_mb: float
    mb_per_h: float
    error_mb_per_h: float

    @property
    def least_mb_per_h(self) -> float:
        """Return the lower end of the slope's 95 % confidence interval."""
        return self.mb_per_h - 2 * self.error_mb_per_h


class ProcessSample(NamedTuple):
    """Private memory and CPU time of a process since its start, `at_s` seconds after the start of the run."""

    at_s: float
    mb: float
    cpu_s: float


class ProcessSampler:
    """Memory and CPU time of the processes that the kill schedule names, sampled in a thread while its block runs.

    Programs include their children; the daemon that Spark forks its Python workers from is not one of them. A fixed
    piece of work is timed as well: when it takes longer, the machine has become slower.
    """

    def __init__(self, processes: BoxProcesses, every_s: float) -> None:
        self._processes, self._every_s = processes, every_s
        self._samples: dict[str, list[ProcessSample]] = {}
        self._work_ms: list[tuple[float, float]] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="processes", daemon=True)

    def __enter__(self) -> "ProcessSampler":
        self._began_s = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join(30)

    def trends(self, *, after_s: float) -> dict[str, MemoryTrend]:
        """Return the trend of each process from `after_s` seconds after the start on. Fails if one has no samples."""
        late = {
            name: [(one.at_s, one.mb) for one in self._samples.get(name, []) if one.at_s >= after_s]
            for name in sorted(STARTS_AGAIN)
        }
        assert [name for name, samples in late.items() if len(samples) < LEAST_SAMPLES] == []
        return {name: trend_of(samples) for name, samples in late.items()}

    def memory_by_step(self, step_s: float) -> dict[str, list[float]]:
        """Return the memory of each process in MB, the first sample of each `step_s` seconds."""
        return {
            name: [round(samples[at].mb, 1) for at in np.unique([one.at_s // step_s for one in samples], True)[1]]
            for name, samples in self._samples.items()
        }

    def cores(self, since_s: float, until_s: float) -> dict[str, float]:
        """Return the CPU seconds per second that each process used between two times of the run."""
        used = {}
        for name, samples in self._samples.items():
            inside = [one for one in samples if since_s <= one.at_s <= until_s]
            if len(inside) > 1:
                used[name] = (inside[-1].cpu_s - inside[0].cpu_s) / (inside[-1].at_s - inside[0].at_s)
        return used

    def work_ms(self, since_s: float, until_s: float) -> float:
        """Return the median CPU time that the fixed piece of work took between two times of the run."""
        return statistics.median(took_ms for at_s, took_ms in self._work_ms if since_s <= at_s <= until_s)

    def _sample(self) -> None:
        while not self._ending.wait(self._every_s):
            for name in STARTS_AGAIN:
                with contextlib.suppress(LookupError, psutil.Error):
                    process = psutil.Process(self._processes.pid(name))
                    group = [process, *([] if name in WITHOUT_CHILDREN else process.children(recursive=True))]
                    at_s = time.monotonic() - self._began_s
                    sample = ProcessSample(at_s, sum(map(_private_mb, group)), sum(map(_cpu_s, group)))
                    self._samples.setdefault(name, []).append(sample)
            self._work_ms.append((time.monotonic() - self._began_s, fixed_work_ms()))


def fixed_work_ms() -> float:
    """Return the CPU time that a fixed piece of work takes."""
    began_s = time.thread_time()
    sum(hash((number, "work")) & 1 for number in range(FIXED_WORK))
    return (time.thread_time() - began_s) * 1_000


def _private_mb(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.Error):
        memory = process.memory_info()
        return float(memory.rss - memory.shared) / 1e6
    return 0.0


def _cpu_s(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.Error):
        times = process.cpu_times()
        return float(times.user + times.system)
    return 0.0


def trend_of(samples: Sequence[tuple[float, float]]) -> MemoryTrend:
    """Return the trend of at least three samples (seconds, MB)."""
    hours, mb = np.array(samples).T
    hours = hours / 3_600
    spread = float(((hours - hours.mean()) ** 2).sum())
    slope, intercept = np.polyfit(hours, mb, 1)
    residual = float(((mb - (slope * hours + intercept)) ** 2).sum()) / (len(samples) - 2)
    return MemoryTrend(float(mb[-1]), float(slope), math.sqrt(residual / spread))


class Deliveries(NamedTuple):
    """Content of the logs of sender and receiver, by position."""

    acked: int
    lost: int
    repeated: int
    p95_ms: Mapping[int, float]  # by minute since the epoch at which the events were sent


def deliveries_of(sent_log: Path, received_log: Path, since_us: int = 0) -> Deliveries:
    """Compare the logs from a time on. They may have tens of millions of lines: 16 bytes of memory for each."""
    sent, sent_us = _columns(
        (line.position, line.sent_us)
        for line in read_sent(sent_log)
        if line.status == ACCEPTED and line.position is not None and line.sent_us >= since_us
    )
    received, received_us = _columns(
        (line.position, line.received_us) for line in read_received(received_log) if line.received_us >= since_us
    )
    acked, first_sent = np.unique(sent, return_index=True)
    delivered, first_received = np.unique(received, return_index=True)
    both, of_sent, of_received = np.intersect1d(acked, delivered, assume_unique=True, return_indices=True)
    began_us = sent_us[first_sent[of_sent]]
    delays_ms = (received_us[first_received[of_received]] - began_us) / 1_000
    minutes = began_us // MINUTE_US
    p95_ms = {int(minute): float(np.quantile(delays_ms[minutes == minute], 0.95)) for minute in np.unique(minutes)}
    return Deliveries(len(acked), len(acked) - len(both), len(received) - len(delivered), p95_ms)


def _columns(lines: Iterable[tuple[int, int]]) -> tuple[Any, Any]:
    """Return positions and times as arrays."""
    positions, times = array("Q"), array("q")
    for position, time_us in lines:
        positions.append(position)
        times.append(time_us)
    return np.frombuffer(positions, dtype=np.uint64), np.frombuffer(times, dtype=np.int64)
