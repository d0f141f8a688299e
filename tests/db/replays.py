"""Replays, and their facts as the Observer would have written them."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyroaring import BitMap64

from dataplane.ledger.replay_buckets import spread
from dataplane.ledger.units import position_of
from dataplane.tables.replays import REPLAY_VERSION, ReplayProgress
from mgmt.models import FactRow, HighOffset, Pipe, PipeRevision, Replay
from mgmt.services import ReplayRequest, start_replay
from tests.db.console.truth import go_live

NOW: Final = datetime(2026, 11, 27, 12, 0, 30, tzinfo=UTC)
SINCE, UNTIL = NOW - timedelta(hours=4), NOW - timedelta(hours=1)
INGEST: Final = "penstock.c1.ingest.g1/0"


def publish(pipe: Pipe) -> None:
    """Place the pipe and make its newest revision live and published, as the Provisioner does."""
    go_live(pipe)
    PipeRevision.objects.filter(pipe=pipe).update(published_offset=1)
    pipe.refresh_from_db()


def a_request(**changes: Any) -> ReplayRequest:
    """Return a request for three hours of events."""
    return ReplayRequest(**{"since": SINCE, "until": UNTIL} | changes)


def a_replay(pipe: Pipe, **changes: Any) -> Replay:
    """Start a replay of a published pipe at NOW."""
    return start_replay(pipe=pipe, request=a_request(**changes), by=None, now=NOW)


def a_report(replay: Replay, **changes: Any) -> ReplayProgress:
    """Return a report of the driver after half of 200 records."""
    fields: dict[str, Any] = {
        "version": REPLAY_VERSION,
        "replay": replay.id,
        "at_us": int(NOW.timestamp()) * 1_000_000,
        "reached": {INGEST: 1_100},
        "ends": {INGEST: 1_200},
        "read": 100,
        "asked": 80,
        "units": {"crm": 70},
        "filtered": 7,
        "failed": 3,
        "size_bytes": 9_000,
    }
    return ReplayProgress(**fields | changes)


def replay_fact(
    replay: Replay, node: str, fact: str, offsets: Iterable[int], detail: str = "", *, child: int = 0
) -> None:
    """Store a fact of the replay's account."""
    its = spread(replay.bucket, BitMap64(position_of(1, 0, offset) for offset in offsets))
    FactRow.objects.bulk_create(
        FactRow(
            pipe_id=replay.id,
            bucket=bucket,
            node=node,
            fact=fact,
            detail=detail,
            child=child,
            audit_partition=0,
            positions=positions.serialize(),
            count=len(positions),
        )
        for bucket, positions in its.items()
    )


def replay_facts(replay: Replay, offsets: range, *, delivered: range, dead: Iterable[int] = ()) -> None:
    """Store the facts of events that were sent to the destination crm, of which some were delivered or failed."""
    replay_fact(replay, "ingest", "sent", offsets, "acked")
    replay_fact(replay, "process", "sent", offsets)
    replay_fact(replay, "transform:crm", "sent", offsets)
    replay_fact(replay, "transmit:crm", "delivered", delivered)
    if dead:
        replay_fact(replay, "transmit:crm", "dead", dead)
    HighOffset.objects.create(
        pipe_id=replay.id, bucket=replay.bucket, topic="penstock.c1.egress.g1", partition=0, offset=max(offsets)
    )
