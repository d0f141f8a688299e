"""Dead letters, held messages and alerts as the Observer would have stored them."""

from datetime import datetime
from typing import Any

from dataplane.ledger.units import position_of
from mgmt.alerts.services.alerts import FailureGroup, note_failures
from mgmt.deliveries.services.offset_sets import OffsetSetKey, StoredPosition, add_places
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import Alert, DeadLetter, HeldMessage, OffsetSet, Pipe

DEAD, HELD = "penstock.c1.dead.g1", "penstock.c1.held.g1"
ANSWER = 'HTTP/1.1 401 Unauthorized\n\n{"error": "key <script>alert(1)</script> expired"}'


def store_dead(pipe: Pipe, offsets: range, at: datetime, *, cause: str = "rejected", where: str = "crm") -> None:
    """Store listed dead letters and their offset set."""
    DeadLetter.objects.bulk_create(_letter(pipe, offset, at, cause, where) for offset in offsets)
    _store(pipe, OffsetSet.Kind.DEAD, DEAD, offsets, at, cause, where)


def store_held(pipe: Pipe, offsets: range, at: datetime, *, where: str = "crm") -> None:
    """Store listed held messages and their offset set."""
    HeldMessage.objects.bulk_create(HeldMessage(**_listed(pipe, offset, at, where, HELD)) for offset in offsets)
    _store(pipe, OffsetSet.Kind.HELD, HELD, offsets, at, "", where)


def open_alert(pipe: Pipe, at: datetime, **more: Any) -> Alert:
    """Open an alert about 401s at crm, with a sample."""
    sample = {
        "message_id": "m7",
        "position": "1-0-7",
        "request": {"method": "POST", "url": "https://crm.example.com/in", "headers": {}},
        "status": 401,
        "answer": ANSWER,
        "reason": "returned 401",
        "curl": "curl -sS https://crm.example.com/in -d '{}'",
    }
    failure = FailureGroup(pipe.id, "crm", "rejected", 20, at, sample, more.get("suspended", False))
    note_failures(failures=[failure], now=at)
    return Alert.objects.get(pipe=pipe, cause="rejected")


def _store(pipe: Pipe, kind: str, topic: str, offsets: range, at: datetime, cause: str, where: str) -> None:
    at_s = int(at.timestamp())
    key = OffsetSetKey(pipe.id, where, kind, cause, topic, 0, at_s // 3600)
    add_places(StoredPosition(key, offset, at_s) for offset in offsets)


def _letter(pipe: Pipe, offset: int, at: datetime, cause: str, where: str) -> DeadLetter:
    return DeadLetter(
        **_listed(pipe, offset, at, where, DEAD),
        node=f"transmit:{where}" if where else "normalize",
        cause=cause,
        detail=f"{cause}: returned 401" if where else "$.total: needs a number",
        answer=ANSWER if where else "",
        bucket=bucket_at(at),
        revision=1,
        attempts=0,
    )


def _listed(pipe: Pipe, offset: int, at: datetime, where: str, topic: str) -> dict[str, Any]:
    return {
        "pipe_id": pipe.id,
        "destination": where,
        "message_id": f"m{offset}",
        "key": f"k{offset % 2}",
        "position": position_of(1, 0, offset),
        "at": at,
        "topic": topic,
        "partition": 0,
        "offset": offset,
    }
