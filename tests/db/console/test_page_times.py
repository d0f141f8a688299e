"""Server time of the pages of a busy tenant: 200 pipes, and an hour with one million messages in the ledger.

The target is 150 ms for every page. Home and the page of a pipe miss it in slow hours of a shared machine
(docs/performance.md): their limits only notice that they become slower.
"""

import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import NewTopic
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from controlplane.observer.attempts import SuccessSampler
from controlplane.observer.batch import AuditBatch
from controlplane.observer.rollups import keep_rollups
from controlplane.observer.sealing import Sealer
from controlplane.observer.store import LedgerStore
from dataplane.ledger.meta import META_HEADER, MessageMeta, encode_meta
from dataplane.ledger.units import MINUTE_US
from dataplane.names import AUDIT_TOPIC, WIRE_VERSION, cell_topic
from dataplane.runtime.garbage import collect_rarely
from loadgen.measured import EVENT
from mgmt.messages.queries.last_event import last_place
from mgmt.models import (
    Alert,
    AuditOffset,
    Cell,
    CellVerdict,
    ControlAction,
    Destination,
    Membership,
    Pipe,
    ScaleSample,
    Seal,
    Tenant,
    User,
)
from tests.db.controlplane.test_observer_storage import AUDIT, Message
from tests.db.controlplane.test_ten_thousand_pipes import audits, live_pipes
from tests.support.cluster import broker_for_cells
from tests.support.kafka import admin_producer, broker_admin

pytestmark = [pytest.mark.django_db, pytest.mark.long, pytest.mark.alone]
PIPES: Final = 200
MINUTES: Final = 60
UNITS: Final = 84  # 200 x 60 x 84 = 1 008 000 messages
OPEN: Final = 2 * PIPES  # pipe-minutes within their grace period
CELLS: Final = 5
SAMPLES: Final = 720  # an hour of the Autoscaler, every five seconds
ACTIONS: Final = 5_000
TIMES: Final = 20
TARGET_MS: Final = 150.0
LIMITS_MS: Final = {"home": 600.0, "home, 24 h": 600.0, "pipe": 350.0, "pipe, 6 h": 350.0}


@pytest.fixture
def pipe(db: None) -> str:
    """Fill the ledger through the Observer's own store and sealer; return one of the pipes."""
    pipes, store, offset, now = live_pipes(PIPES, 1, units=UNITS), LedgerStore(), 0, timezone.now()
    AuditOffset.objects.create(topic=AUDIT_TOPIC, partition=0, next_offset=0)
    store.offsets = {AUDIT: 0}
    last = int(now.timestamp()) // 60 - 1
    for bucket in range(last - MINUTES + 1, last + 1):
        batch = AuditBatch(SuccessSampler(5))
        for value in audits(pipes, bucket, UNITS):
            batch.add(Message(AUDIT, offset, value))
            offset += 1
        store.save(batch, maybe_sealed_before=0, now=datetime.now(UTC))
    sealer = Sealer(60)
    sealer.load(0)
    while sealer.step(now, lambda _: (0, 0)):
        pass
    assert Seal.objects.count() >= PIPES * MINUTES - OPEN
    keep_rollups(now, 60, budget_s=600)
    return pipes[3]


@pytest.fixture
def stored_events(pipe: str, tmp_path: Path, settings: LazySettings) -> Iterator[None]:
    """Store the events of the pipe in Kafka: the editor shows the newest one."""
    place = last_place(Pipe.objects.get(id=pipe))
    with broker_for_cells(tmp_path) as broker:
        settings.PENSTOCK_KAFKA = broker.address
        name = cell_topic("c1", "ingest", place.generation)
        admin = broker_admin(broker.address)
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
        now_us = time.time_ns() // 1_000
        meta = MessageMeta(WIRE_VERSION, f"msg_{uuid.uuid4()}", pipe, 1, "shop", now_us, now_us, now_us // MINUTE_US)
        producer = admin_producer({"bootstrap.servers": broker.address})
        for _ in range(place.offset + 1):
            producer.produce(name, EVENT, partition=place.partition, headers=[(META_HEADER, encode_meta(meta))])
        assert producer.flush(30) == 0
        yield


def fill_control_plane(now: datetime) -> None:
    """Fill the rows of the status board: cells with an hour of samples, alerts, and a minute that each pipe lost in."""
    for number in range(CELLS):
        name = f"board{number}"
        cell = Cell.objects.create(id=name)
        CellVerdict.objects.create(cell=cell, state="unstable", reasons=["why"], kinds=["behind"], since=now, at=now)
        ScaleSample.objects.bulk_create(
            ScaleSample(cell=name, kind=kind, at=now - timedelta(seconds=5 * tick), lanes={}, came=-tick, settled=-tick)
            for kind in ("process", "transmit")
            for tick in range(SAMPLES)
        )
    ControlAction.objects.bulk_create(
        ControlAction(at=now, controller="scale", action="scale", outcome="refused", refusal="paused", cell_id="board0")
        for _ in range(ACTIONS)
    )
    for row in Destination.objects.select_related("pipe"):
        Alert.objects.create(
            pipe=row.pipe, destination=row.name, cause="server-error", status=503, opened_at=now, last_at=now
        )
    lossy = Seal.objects.filter(bucket=Seal.objects.earliest("bucket").bucket)
    lossy.update(lost=1, bins={"crm": {"lost": 1}})


@pytest.mark.usefixtures("stored_events")
def test_every_page_answers_within_its_limit(pipe: str, client: Client):
    fill_control_plane(timezone.now())
    collect_rarely()  # as the web process does
    viewer = User.objects.create_user("vera", is_staff=True)
    Membership.objects.create(tenant=Tenant.objects.get(), user=viewer, role="owner")
    client.force_login(viewer)
    minute, of_pipe = int(time.time()) // 60 - 20, f"/pipes/{pipe}/"
    pages = {
        "home": "/", "home, 24 h": "/?range=24h", "pipe": of_pipe, "pipe, 6 h": f"{of_pipe}?range=6h",
        "minute": f"{of_pipe}minutes/{minute}/", "alerts": "/alerts/", "search": "/find/",
        "attempts": f"{of_pipe}attempts/", "dead letters": f"{of_pipe}dead/", "revisions": f"{of_pipe}revisions/",
        "editor": f"{of_pipe}edit/", "usage": "/usage/", "status board": "/staff/board/", "losses": "/staff/losses/",
        "history": "/staff/controllers/scale/",
    }  # fmt: skip
    assert b"Ada Lovelace" in client.get(pages["editor"]).content, "the editor shows the stored event"
    p95_ms = {name: _p95_ms(client, url) for name, url in pages.items()}
    print(", ".join(f"{name} {took:.0f} ms" for name, took in p95_ms.items()))  # noqa: T201
    assert {name: took for name, took in p95_ms.items() if took > LIMITS_MS.get(name, TARGET_MS)} == {}


def _p95_ms(client: Client, url: str) -> float:
    assert client.get(url).status_code == 200  # the first request loads the templates
    took_ms = []
    for _ in range(TIMES):
        began_s = time.perf_counter()
        client.get(url)
        took_ms.append((time.perf_counter() - began_s) * 1_000)
    return sorted(took_ms)[int(0.95 * TIMES) - 1]
