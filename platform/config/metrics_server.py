"""Metrics of the web process."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from dataplane.runtime.telemetry.metrics_registry import MetricReading, MetricsRegistry
from mgmt.tail import hub

BOARD: Final = MetricsRegistry()
REQUEST_S: Final = BOARD.histogram("penstock_web_request_seconds")
# Requests that the front refused, by code. Each code is exported as 0 before its first refusal, so that rates are
# right.
REFUSALS: Final = Counter(dict.fromkeys(("body-slow", "body-too-large", "busy"), 0))


def serve_web() -> None:
    """Serve the metrics at the address in PENSTOCK_METRICS."""
    BOARD.reads(_viewers)
    BOARD.reads(_refusals)
    BOARD.serve()


def _refusals() -> Iterator[MetricReading]:
    for code, count in REFUSALS.copy().items():
        yield MetricReading("penstock_web_refusals_total", count, (code,))


def _viewers() -> Iterator[MetricReading]:
    yield MetricReading("penstock_web_tail_viewers", hub().viewers)
