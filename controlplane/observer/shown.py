"""What the Observer shows as metrics: how it does, what heartbeats say of everybody else, and the truth's sums."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import structlog
from django.db import DatabaseError, InterfaceError, close_old_connections
from django.db.models import Count, Sum
from prometheus_client import CollectorRegistry

from controlplane.observer.ends import purpose_of
from controlplane.observer.sealing import Sealer
from dataplane.names import AUDIT_TOPIC, HEARTBEAT_TOPIC
from dataplane.runtime.board import Board, Reading
from mgmt.models import Alert, Heartbeat, OffsetSet, Pipe

REMEMBERED: Final = timedelta(minutes=10)  # who has said nothing for so long was ended on purpose, or an alarm was made
_PURPOSES: Final = {AUDIT_TOPIC: "audit", HEARTBEAT_TOPIC: "heartbeats"}
log = structlog.get_logger(__name__)


class Shown:
    """Turned by the Observer's one thread, read by those that serve metrics."""

    def __init__(self) -> None:
        self._sessions = 0
        self._sealer: Sealer | None = None
        self._records: Counter[str] = Counter()
        self._behind_s = 0.0
        self._board = Board()
        self._store_s = self._board.histogram("penstock_observer_store_seconds")

    def serve(self) -> None:
        """Where PENSTOCK_METRICS says."""
        self._board.reads(self.own)
        self._board.reads(stored)
        self._board.serve()

    @property
    def registry(self) -> CollectorRegistry:
        """Everything that is served."""
        return self._board.registry

    def begin(self, sealer: Sealer) -> None:
        """A session began, with a Sealer of its own."""
        self._sessions += 1
        self._sealer = sealer

    def read(self, messages: Sequence[Any], now_s: float) -> None:
        """These were read; none, where nothing had come."""
        self._records.update(_PURPOSES.get(topic) or purpose_of(topic) for topic in (one.topic() for one in messages))
        self._behind_s = now_s - max(one.timestamp()[1] for one in messages) / 1_000 if messages else 0.0

    def storing(self) -> AbstractContextManager[Any]:
        """Around the storing of a batch."""
        return self._store_s.time()

    def own(self) -> Iterator[Reading]:
        """How the Observer does."""
        for purpose, count in self._records.copy().items():
            yield Reading("penstock_observer_records_total", count, (purpose,))
        yield Reading("penstock_observer_behind_seconds", self._behind_s)
        yield Reading("penstock_observer_sessions_total", self._sessions)
        if self._sealer:
            sums = self._sealer.sums
            yield Reading("penstock_observer_open_minutes", self._sealer.open_minutes)
            yield Reading("penstock_sealed_minutes_total", sums.minutes)
            yield Reading("penstock_sealed_messages_total", sums.accepted)
            yield Reading("penstock_lost_units_total", sums.lost)


def stored() -> list[Reading]:
    """What the rows say at this moment; nothing of it while Postgres is away."""
    now = datetime.now(UTC)
    try:
        return [*heartbeats(now), *counts()]
    except (DatabaseError, InterfaceError) as exc:
        log.warning("metrics without the rows", error=f"{type(exc).__name__}: {exc}"[:300])
        return []
    finally:
        close_old_connections()  # each reading has a thread of its own


def heartbeats(now: datetime) -> Iterator[Reading]:
    """What drivers, lanes and ingest replicas last said of themselves."""
    for row in Heartbeat.objects.filter(at__gte=now - REMEMBERED):
        who, said = (row.cell, row.writer, row.kind), row.body
        figures = {
            "heartbeat_age_seconds": (now - row.at).total_seconds(),
            "running": row.state == "running",
            "cpu_seconds_total": said["cpu_s"],
            "resident_bytes": said["rss_bytes"],
            "unsettled_messages": said["unsettled"],
            "partitions": len(said["partitions"]),
            "dropped_spans_total": said.get("dropped_spans", 0),
            "failing_files": said.get("failing_files", 0),
            "held_pipes": said.get("held_pipes", 0),
        }
        yield from (Reading(f"penstock_writer_{name}", value, who) for name, value in figures.items())


def counts() -> Iterator[Reading]:
    """Over all pipes: what waits for somebody, who is called, and how many pipes there are."""
    waiting = dict(OffsetSet.objects.order_by().values_list("kind").annotate(Sum("count")))
    for kind in OffsetSet.Kind.values:
        yield Reading("penstock_waiting_messages", waiting.get(kind, 0), (kind,))
    alerts = dict(Alert.objects.order_by().values_list("state").annotate(Count("id")))
    for state in (Alert.State.OPENED, Alert.State.ACKNOWLEDGED, Alert.State.SNOOZED):
        yield Reading("penstock_open_alerts", alerts.get(state, 0), (state.value,))
    pipes = dict(Pipe.objects.order_by().values_list("state").annotate(Count("id")))
    for standing in Pipe.State.values:
        yield Reading("penstock_pipes", pipes.get(standing, 0), (standing,))
