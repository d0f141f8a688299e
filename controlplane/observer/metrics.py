"""Metrics of the Observer: its own state, the heartbeats of all other processes, and totals of the ledger."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import structlog
from django.db import DatabaseError, InterfaceError, close_old_connections
from django.db.models import Count, Sum
from prometheus_client import CollectorRegistry

from controlplane.observer.ledger_entries import purpose_of
from controlplane.observer.sealing import Sealer
from dataplane.names import AUDIT_TOPIC, HEARTBEAT_TOPIC
from dataplane.runtime.telemetry.metrics_registry import MetricReading, MetricsRegistry
from mgmt.models import Alert, Cell, Heartbeat, Lease, OffsetSet, Pipe

REMEMBERED: Final = timedelta(minutes=10)  # a writer silent for longer was stopped on purpose, or has raised an alarm
_PURPOSES: Final = {AUDIT_TOPIC: "audit", HEARTBEAT_TOPIC: "heartbeats"}
log = structlog.get_logger(__name__)


class ObserverMetrics:
    """Counters that the Observer's one thread updates and the threads of the metrics server read."""

    def __init__(self) -> None:
        self._sessions = 0
        self._sealer: Sealer | None = None
        self._records: Counter[str] = Counter()
        self._behind_s = 0.0
        self._board = MetricsRegistry()
        self._store_s = self._board.histogram("penstock_observer_store_seconds")

    def serve(self) -> None:
        """Serve metrics at the address in PENSTOCK_METRICS."""
        self._board.reads(self.own)
        self._board.reads(stored)
        self._board.serve()

    @property
    def registry(self) -> CollectorRegistry:
        """Return the registry of all metrics served."""
        return self._board.registry

    def begin(self, sealer: Sealer) -> None:
        """Count a new session, which has its own Sealer."""
        self._sessions += 1
        self._sealer = sealer

    def read(self, messages: Sequence[Any], now_s: float) -> None:
        """Count the records of one poll; without records, the Observer is not behind."""
        self._records.update(_PURPOSES.get(topic) or purpose_of(topic) for topic in (one.topic() for one in messages))
        self._behind_s = now_s - max(one.timestamp()[1] for one in messages) / 1_000 if messages else 0.0

    def storing(self) -> AbstractContextManager[Any]:
        """Return a context manager that times the storing of a batch."""
        return self._store_s.time()

    def own(self) -> Iterator[MetricReading]:
        """Yield the metrics of the Observer itself."""
        for purpose, count in self._records.copy().items():
            yield MetricReading("penstock_observer_records_total", count, (purpose,))
        yield MetricReading("penstock_observer_behind_seconds", self._behind_s)
        yield MetricReading("penstock_observer_sessions_total", self._sessions)
        if self._sealer:
            sums = self._sealer.sums
            yield MetricReading("penstock_observer_open_minutes", self._sealer.open_minutes)
            yield MetricReading("penstock_sealed_minutes_total", sums.minutes)
            yield MetricReading("penstock_sealed_messages_total", sums.accepted)
            for cell, lost in sums.lost.copy().items():
                yield MetricReading("penstock_lost_units_total", lost, (cell,))


def stored() -> list[MetricReading]:
    """Return the metrics that are read from rows; an empty list while Postgres is down."""
    now = datetime.now(UTC)
    try:
        return [*heartbeats(now), *counts(), *changes(now)]
    except (DatabaseError, InterfaceError) as exc:
        log.warning("metrics from rows unavailable", error=f"{type(exc).__name__}: {exc}"[:300])
        return []
    finally:
        close_old_connections()  # each scrape runs in its own thread


def heartbeats(now: datetime) -> Iterator[MetricReading]:
    """Yield metrics of drivers, lanes and ingest replicas, from their last heartbeats."""
    for row in Heartbeat.objects.filter(at__gte=now - REMEMBERED):
        labels, body = (row.cell, row.writer, row.kind), row.body
        figures = {
            "heartbeat_age_seconds": (now - row.at).total_seconds(),
            "running": row.state == "running",
            "cpu_seconds_total": body["cpu_s"],
            "resident_bytes": body["rss_bytes"],
            "unsettled_messages": body["unsettled"],
            "partitions": len(body["partitions"]),
            "dropped_spans_total": body.get("dropped_spans", 0),
            "failing_files": body.get("failing_files", 0),
            "held_pipes": body.get("held_pipes", 0),
        }
        yield from (MetricReading(f"penstock_writer_{name}", value, labels) for name, value in figures.items())


def changes(now: datetime) -> Iterator[MetricReading]:
    """Yield for each cell whether a controller changes it now. The alarms about losses use it."""
    changing = set(Lease.objects.filter(until__gt=now).exclude(holder="").values_list("cell_id", flat=True))
    for cell in Cell.objects.values_list("id", flat=True):
        yield MetricReading("penstock_cell_changing", cell in changing, (cell,))


def counts() -> Iterator[MetricReading]:
    """Yield totals over all pipes: held and dead messages, open alerts by state, and pipes by state."""
    waiting = dict(OffsetSet.objects.order_by().values_list("kind").annotate(Sum("count")))
    for kind in OffsetSet.Kind.values:
        yield MetricReading("penstock_waiting_messages", waiting.get(kind, 0), (kind,))
    alerts = dict(Alert.objects.order_by().values_list("state").annotate(Count("id")))
    for state in (Alert.State.OPENED, Alert.State.ACKNOWLEDGED, Alert.State.SNOOZED):
        yield MetricReading("penstock_open_alerts", alerts.get(state, 0), (state.value,))
    pipes = dict(Pipe.objects.order_by().values_list("state").annotate(Count("id")))
    for state_ in Pipe.State.values:
        yield MetricReading("penstock_pipes", pipes.get(state_, 0), (state_,))
