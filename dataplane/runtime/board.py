"""The metrics of one process, served as Prometheus reads them. Nothing waits for whoever reads.

Figures that a process has anyway are read when they are asked for, so the hot paths pay for none of this.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import psutil
from prometheus_client import CollectorRegistry, Histogram, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from dataplane.metrics import BY_NAME
from dataplane.runtime.tracing import dropped_spans

log = logging.getLogger(__name__)

VARIABLE: Final = "PENSTOCK_METRICS"
Family = CounterMetricFamily | GaugeMetricFamily


class Reading(NamedTuple):
    """One figure of a counter or gauge of dataplane.metrics, with its labels in their order."""

    name: str
    value: float
    labels: tuple[str, ...] = ()


Read = Callable[[], Iterable[Reading]]


class Board(Collector):
    """What one process shows. `reads` and `histogram` raise KeyError for a name that is not in the list."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self._reads: list[Read] = [process_readings]

    def reads(self, read: Read) -> None:
        """Ask for these each time somebody looks."""
        self._reads.append(read)

    def histogram(self, name: str) -> Histogram:
        """An instrument that is told as things happen."""
        metric = BY_NAME[name]
        return Histogram(name, metric.says, metric.labels, registry=self.registry)

    def collect(self) -> Iterator[Family]:
        """For the registry: every reading, by its metric."""
        families: dict[str, Family] = {}
        for read in self._reads:
            for reading in read():
                family = families.get(reading.name) or families.setdefault(reading.name, _family(reading.name))
                family.add_metric(reading.labels, reading.value)
        yield from families.values()

    def serve(self, env: Mapping[str, str] = os.environ) -> None:
        """Listen where PENSTOCK_METRICS says, nowhere if it says nothing. A process does its work without, too."""
        host, _, port = env.get(VARIABLE, "").rpartition(":")
        if not port.isdecimal():
            return
        try:
            start_http_server(int(port), host or "127.0.0.1", self.registry)
        except OSError as exc:
            log.warning("no metrics are served at %s:%s: %s", host, port, exc)


def _family(name: str) -> Family:
    metric = BY_NAME[name]
    if metric.kind == "counter":
        return CounterMetricFamily(name, metric.says, labels=metric.labels)
    return GaugeMetricFamily(name, metric.says, labels=metric.labels)


def process_readings() -> Iterator[Reading]:
    """What every process says of itself."""
    process = psutil.Process()
    times = process.cpu_times()
    yield Reading("penstock_process_cpu_seconds_total", times.user + times.system)
    yield Reading("penstock_process_resident_bytes", process.memory_info().rss)
    yield Reading("penstock_process_start_seconds", process.create_time())
    yield Reading("penstock_process_dropped_spans_total", dropped_spans())
