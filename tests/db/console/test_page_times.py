"""Server time of the pages of a busy tenant: 200 pipes, and an hour with one million messages in the ledger.

The target is 150 ms for every page. Home and the page of a pipe miss it (docs/performance.md): their limits only notice
that they become slower.
"""

import time
from datetime import UTC, datetime
from typing import Final

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.observer.attempts import SuccessSampler
from controlplane.observer.batch import AuditBatch
from controlplane.observer.sealing import Sealer
from controlplane.observer.store import LedgerStore
from dataplane.names import AUDIT_TOPIC
from mgmt.models import AuditOffset, Membership, Seal, Tenant, User
from tests.db.controlplane.test_observer_stores import AUDIT, Message
from tests.db.controlplane.test_ten_thousand_pipes import audits, live_pipes

pytestmark = [pytest.mark.django_db, pytest.mark.long, pytest.mark.alone]
PIPES: Final = 200
MINUTES: Final = 60
UNITS: Final = 84  # 200 x 60 x 84 = 1 008 000 messages
OPEN: Final = 2 * PIPES  # pipe-minutes within their grace period
TIMES: Final = 20
TARGET_MS: Final = 150.0
LIMITS_MS: Final = {"home": 2_000.0, "home, 24 h": 2_000.0, "pipe": 600.0, "pipe, 6 h": 600.0}


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
    return pipes[3]


def test_every_page_answers_within_its_limit(pipe: str, client: Client):
    viewer = User.objects.create_user("vera")
    Membership.objects.create(tenant=Tenant.objects.get(), user=viewer, role="owner")
    client.force_login(viewer)
    minute, of_pipe = int(time.time()) // 60 - 20, f"/pipes/{pipe}/"
    pages = {
        "home": "/", "home, 24 h": "/?range=24h", "pipe": of_pipe, "pipe, 6 h": f"{of_pipe}?range=6h",
        "minute": f"{of_pipe}minutes/{minute}/", "alerts": "/alerts/", "search": "/find/",
        "attempts": f"{of_pipe}attempts/", "dead letters": f"{of_pipe}dead/", "revisions": f"{of_pipe}revisions/",
        "editor": f"{of_pipe}edit/", "usage": "/usage/",
    }  # fmt: skip
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
