"""Ten thousand busy pipes: cost of one minute for the Observer to store and seal, and for home to show."""

import time
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
import pytest
from django.test import Client
from django.utils import timezone

from controlplane.observer.attempts import SuccessSampler
from controlplane.observer.batch import AuditBatch
from controlplane.observer.sealing import Sealer
from controlplane.observer.store import LedgerStore
from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord, LagSet
from dataplane.ledger.breakdown import SLICES, Slice
from dataplane.ledger.facts import FactBook, FactKey
from dataplane.ledger.report_parts import encode_parts
from dataplane.ledger.units import position_of
from dataplane.names import AUDIT_TOPIC, cell_topic
from dataplane.record_limits import REPORT_BYTES
from dataplane.runtime.telemetry.lags import LagBook
from mgmt.models import (
    AuditOffset,
    Cell,
    FactRow,
    LagRow,
    Membership,
    Pipe,
    PipeRevision,
    Seal,
    SettledOffset,
    Source,
    Tenant,
    Topic,
    User,
)
from tests.db.controlplane.test_observer_storage import AUDIT, Message

pytestmark = [pytest.mark.django_db, pytest.mark.long, pytest.mark.alone]
PIPES: Final = 10_000
TENANTS: Final = 50
UNITS: Final = 30
FACTS: Final = [
    ("ingest", "sent", "acked"),
    ("ingest", "sent", "seen"),
    ("process", "sent", ""),
    ("transform:main", "sent", ""),
    ("transmit:main", "delivered", ""),
]
NODES: Final = ("ingest", "normalize", "transform:main", "transmit:main")
SPENT: Final = (
    Slice.INGEST,
    Slice.PROCESS_QUEUE,
    Slice.NORMALIZE,
    Slice.TRANSFORM,
    Slice.TRANSMIT_QUEUE,
    Slice.TRANSMIT,
)


@pytest.fixture
def pipes(db: None) -> list[str]:
    return live_pipes(PIPES, TENANTS, units=UNITS)


def live_pipes(count: int, tenants: int, *, units: int) -> list[str]:
    """Create pipes with one source and destination; their lanes have settled `units` messages of each."""
    cell = Cell.objects.create(id="c1")
    for purpose in ("ingest", "egress"):
        name = cell_topic("c1", purpose, 1)
        Topic.objects.create(cell=cell, purpose=purpose, name=name, topic_id=purpose, partitions=1)
        SettledOffset.objects.create(topic=name, partition=0, offset=count * units)
    owners = Tenant.objects.bulk_create(Tenant(name=f"Tenant {n}") for n in range(tenants))
    rows = Pipe.objects.bulk_create(Pipe(tenant=owners[n % tenants], name=f"pipe {n}", cell=cell) for n in range(count))
    spec = {"sources": {"shop": {}}, "destinations": {"main": {"type": "http", "url": "https://main.example/"}}}
    PipeRevision.objects.bulk_create(PipeRevision(pipe=row, number=1, spec=spec, state="live") for row in rows)
    Source.objects.bulk_create(Source(pipe=row, name="shop") for row in rows)
    return [row.id for row in rows]


def timing_of(bucket: int, units: int) -> list[LagSet]:
    """Return the timings that lanes report for the messages of a pipe at every node."""
    book = LagBook()
    for node in NODES[:-1]:
        book.add_all(("", node, bucket), [1_000 * n for n in range(units)], [300 + n for n in range(units)])
    for n in range(units):
        spent = [0] * SLICES
        for slice_ in SPENT:
            spent[slice_] = 200 * slice_ + 40 * n
        book.add_delivered(("", NODES[-1], bucket), 1_000, 5_000, spent)
    return book.take()


def audits(pipes: list[str], bucket: int, units: int = UNITS) -> list[bytes]:
    """Return one checkpoint of all pipes as encoded audit records, split as a lane splits it."""
    facts, lags, timing = FactBook(), [], timing_of(bucket, units)
    for number, pipe in enumerate(pipes):
        first = position_of(1, 0, number * units)
        for node, name, detail in FACTS:
            facts.extend(pipe, bucket, FactKey(node, name, detail), range(first, first + units))
        lags += [msgspec.structs.replace(one, pipe=pipe) for one in timing]
    about = (AUDIT_VERSION, "c1", "process-0", "process", 0)
    return encode_parts(AuditRecord(*about, [], [], facts.sets(), lags, run="run", sequence=1))


def test_one_minute_of_all_pipes_is_stored_within_10_s_and_home_loads_at_once(pipes: list[str], client: Client):
    now = timezone.now()
    AuditOffset.objects.create(topic=AUDIT_TOPIC, partition=0, next_offset=0)
    store = LedgerStore()
    store.offsets = {AUDIT: 0}
    records = audits(pipes, int(now.timestamp()) // 60 - 1)
    assert max(map(len, records)) <= REPORT_BYTES
    began = time.perf_counter()
    batch = AuditBatch(SuccessSampler(5))
    for number, value in enumerate(records):
        batch.add(Message(AUDIT, number, value))
    store.save(batch, maybe_sealed_before=0, now=datetime.now(UTC))
    stored_s = time.perf_counter() - began
    assert (FactRow.objects.count(), LagRow.objects.count()) == (PIPES * len(FACTS), PIPES * len(NODES))

    viewer = User.objects.create_user("vera")
    Membership.objects.create(tenant=Tenant.objects.get(name="Tenant 0"), user=viewer, role="viewer")
    client.force_login(viewer)
    client.get("/")  # the first request loads the templates
    took_ms = []
    for _ in range(5):
        began = time.perf_counter()
        assert client.get("/").status_code == 200
        took_ms.append((time.perf_counter() - began) * 1_000)
    sealer, sealed, longest_s = Sealer(60), 0, 0.0
    began = time.perf_counter()
    sealer.load(0)
    loaded_s = time.perf_counter() - began
    began = time.perf_counter()
    while sealer.open_minutes:
        step = time.perf_counter()
        sealed += sealer.step(now + timedelta(minutes=5), lambda _place: (0, PIPES * UNITS))
        longest_s = max(longest_s, time.perf_counter() - step)
    sealed_s = time.perf_counter() - began
    assert sealed == Seal.objects.count() == PIPES
    assert not Seal.objects.filter(lost__gt=0).exists()

    rows, home_ms = PIPES * (len(FACTS) + len(NODES)), sorted(took_ms)[2]
    print(f"{rows} rows in {stored_s:.1f} s; home of {PIPES // TENANTS} pipes {home_ms:.0f} ms")  # noqa: T201
    print(f"sealed in {sealed_s:.1f} s, {longest_s:.1f} s a step; found again in {loaded_s:.1f} s")  # noqa: T201
    assert stored_s < 10
    assert sealed_s < 30  # half of a minute, so that a backlog is caught up
    assert home_ms < 300
