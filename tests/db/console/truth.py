"""Ledger rows of a pipe as the Observer would have written them, for pages to read."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

from django.test import Client
from pyroaring import BitMap64

from dataplane.ledger.breakdown import Breakdown, Slice
from dataplane.ledger.sketch import LagSketch
from dataplane.ledger.units import position_of
from mgmt.ledger.queries.bucket_range import start_of
from mgmt.models import Cell, DeliveryAttempt, FactRow, HighOffset, LagRow, Pipe, Seal, SettledOffset, Topic, User
from mgmt.services import adopt_live_spec

TOPICS = ("ingest", "egress", "retry-in", "retry-out")
BrowserOf = Callable[[User], Client]


def go_live(pipe: Pipe) -> None:
    """Place the pipe and set its revision live, as the Provisioner does."""
    cell, _ = Cell.objects.get_or_create(id="c1")
    for purpose in TOPICS:
        Topic.objects.get_or_create(
            cell=cell,
            purpose=purpose,
            generation=1,
            defaults={"name": f"penstock.c1.{purpose}.g1", "topic_id": purpose, "partitions": 1},
        )
    Pipe.objects.filter(id=pipe.id).update(cell=cell)
    revision = pipe.revisions.latest("number")
    type(revision).objects.filter(pk=revision.pk).update(state="ramping")
    revision.refresh_from_db()
    adopt_live_spec(revision=revision)


def id_as_of_ingest(moment: datetime, number: int) -> str:
    """Return a message's id as ingest makes it: a UUID of version 7 with the time of acceptance."""
    ms = f"{int(moment.timestamp() * 1_000):012x}"
    return f"{ms[:8]}-{ms[8:]}-7000-8000-{number:012x}"


def exported(browser: Client, url: str, **query: str) -> list[dict[str, Any]]:
    """Return the rows of a page's export to a file."""
    answer = browser.get(url, {"format": "jsonl", **query})
    return [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]  # type: ignore[attr-defined]


def plain(html: str) -> str:
    """Return the text of a piece of HTML, without images, with one space between texts."""
    text = re.sub(r"<svg.*?</svg>|<[^>]+>", " ", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(text.replace("\u202f", ""))).strip()


class Truth:
    """Writer of one pipe's rows as the Observer would have written them."""

    def __init__(self, pipe: Pipe, destination: str = "crm") -> None:
        self.pipe = pipe
        self.destination = destination

    def fact(
        self, bucket: int, node: str, fact: str, offsets: list[int], detail: str = "", *, partition: int = 0
    ) -> None:
        """Store a fact, as the Observer of one audit partition does."""
        positions = BitMap64(position_of(1, 0, offset) for offset in offsets)
        FactRow.objects.create(
            pipe_id=self.pipe.id,
            bucket=bucket,
            node=node,
            fact=fact,
            detail=detail,
            audit_partition=partition,
            positions=positions.serialize(),
            count=len(positions),
        )

    def moved(self, bucket: int, offsets: list[int]) -> None:
        """Store facts of messages that were ACKed, seen, processed and sent on to the destination."""
        self.fact(bucket, "ingest", "sent", offsets, "acked")
        self.fact(bucket, "ingest", "sent", offsets, "seen")
        self.fact(bucket, "process", "sent", offsets)
        self.fact(bucket, f"transform:{self.destination}", "sent", offsets)
        HighOffset.objects.create(
            pipe_id=self.pipe.id, bucket=bucket, topic="penstock.c1.egress.g1", partition=0, offset=max(offsets)
        )

    def passed(self, offset: int) -> None:
        """Mark everything below the offset as settled by every reader."""
        for purpose in ("ingest", "egress"):
            SettledOffset.objects.update_or_create(
                topic=f"penstock.c1.{purpose}.g1", partition=0, defaults={"offset": offset}
            )

    def lag(self, bucket: int, node: str, way: str, lags_us: list[int]) -> None:
        """Store lags (`in` or `out`), or process durations (`own`), of a node."""
        sketch = LagSketch()
        sketch.add(lags_us)
        column = way if way == "own" else f"lag_{way}"
        self._timing(bucket, node, **{column: sketch.encode()})

    def delivered(self, bucket: int, slices_us: Mapping[Slice, int], *, source_us: int = 0, count: int = 1) -> None:
        """Store `count` deliveries in the minute, each with its time in these slices."""
        breakdown = Breakdown()
        breakdown.add([source_us] * count, [[slices_us.get(slice_, 0) for slice_ in Slice]] * count)
        self._timing(bucket, f"transmit:{self.destination}", breakdown=breakdown.encode())

    def _timing(self, bucket: int, node: str, **columns: bytes) -> None:
        row = {"pipe_id": self.pipe.id, "bucket": bucket, "node": node, "audit_partition": 0}
        if not LagRow.objects.filter(**row).update(**columns):
            LagRow.objects.create(**row, **columns)

    def attempt(self, bucket: int, offset: int, outcome: str, *, status: int = 204, reason: str = "") -> None:
        at = start_of(bucket) + timedelta(seconds=20)
        DeliveryAttempt.objects.create(
            pipe_id=self.pipe.id,
            destination=self.destination,
            message_id=id_as_of_ingest(start_of(bucket), offset),
            position=position_of(1, 0, offset),
            revision=1,
            bucket=bucket,
            number=1,
            at=at,
            status=status,
            outcome=outcome,
            reason=reason,
            timing_us={"dns": 0, "connect": 200, "tls": 0, "first_byte": 2_900, "total": 3_100},
            next_at=at + timedelta(minutes=1) if outcome == "parked" else None,
        )

    def seal(self, bucket: int, *, accepted: int, lost: int = 0) -> None:
        Seal.objects.create(
            pipe_id=self.pipe.id,
            bucket=bucket,
            sealed_at=datetime.now(UTC),
            accepted=accepted,
            unacked=0,
            lost=lost,
            bins={self.destination: {"delivered": accepted - lost, "lost": lost}},
            nodes=[],
        )
