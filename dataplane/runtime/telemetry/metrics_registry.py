"""Prometheus metrics of one process. Serving them never blocks the process's work.

Values that a process has anyway are read at each scrape, so that the hot paths do not pay for metrics.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import psutil
from prometheus_client import CollectorRegistry, Histogram, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from dataplane.metrics import BY_NAME
from dataplane.runtime.telemetry.tracing import dropped_spans

log = logging.getLogger(__name__)

VARIABLE: Final = "PENSTOCK_METRICS"
Family = CounterMetricFamily | GaugeMetricFamily


class MetricReading(NamedTuple):
    """Value of a counter or gauge of dataplane.metrics, with the label values in the metric's order."""

    name: str
    value: float
    labels: tuple[str, ...] = ()


Read = Callable[[], Iterable[MetricReading]]


class MetricsRegistry(Collector):
    """Metrics of one process. `histogram` and scrapes raise KeyError for names that dataplane.metrics does not list."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self._reads: list[Read] = [process_readings]

    def reads(self, read: Read) -> None:
        """Register a function that is called at each scrape."""
        self._reads.append(read)

    def histogram(self, name: str, buckets: Sequence[float] = Histogram.DEFAULT_BUCKETS) -> Histogram:
        """Return a histogram to be observed as events happen. Raises KeyError if its name is not listed."""
        metric = BY_NAME[name]
        return Histogram(name, metric.says, metric.labels, registry=self.registry, buckets=buckets)

    def collect(self) -> Iterator[Family]:
        """Yield every reading, grouped by metric. Called by the registry."""
        families: dict[str, Family] = {}
        for read in self._reads:
            for reading in read():
                family = families.get(reading.name) or families.setdefault(reading.name, _family(reading.name))
                family.add_metric(reading.labels, reading.value)
        yield from families.values()

    def serve(self, env: Mapping[str, str] = os.environ) -> None:
        """Listen at PENSTOCK_METRICS (`host:port` or `:port`), if it is set. A port that is taken is only logged."""
        host, _, port = env.get(VARIABLE, "").rpartition(":")
        if not port.isdecimal():
            return
        try:
            start_http_server(int(port), host or "127.0.0.1", self.registry)
        except OSError as exc:
            log.warning("could not serve metrics at %s:%s: %s", host, port, exc)


def _family(name: str) -> Family:
    metric = BY_NAME[name]
    if metric.kind == "counter":
        return CounterMetricFamily(name, metric.says, labels=metric.labels)
    return GaugeMetricFamily(name, metric.says, labels=metric.labels)


def process_readings() -> Iterator[MetricReading]:
    """Yield CPU time, memory, start time and dropped spans of the process."""
    process = psutil.Process()
    times = process.cpu_times()
    yield MetricReading("penstock_process_cpu_seconds_total", times.user + times.system)
    yield MetricReading("penstock_process_resident_bytes", process.memory_info().rss)
    yield MetricReading("penstock_process_start_seconds", process.create_time())
    yield MetricReading("penstock_process_dropped_spans_total", dropped_spans())
