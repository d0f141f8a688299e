"""Task of test requests, as a worker runs it: no request delays another, and each row gets its answer."""

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from cryptography.fernet import Fernet
from django.db import connection
from pytest_django import Settings

from controlplane.delivery_test import request
from controlplane.delivery_test.tasks import SendingThread
from loadgen.scripted import Receiver
from mgmt.delivery_tests.services import request_draft_test
from mgmt.models import DestinationTest, TaskRun, Tenant, User
from mgmt.services import create_tenant
from tests.integration.test_forbidden_addresses import Canary
from tests.support.behaviours import hang
from tests.support.patience import Patience

pytestmark = pytest.mark.django_db(transaction=True)
HANGS_MS = 3_000


@pytest.fixture
def alice(settings: Settings) -> User:
    settings.PENSTOCK_FERNET_KEYS = [Fernet.generate_key().decode()]
    return User.objects.create_user("alice")


@pytest.fixture
def tenant(alice: User) -> Tenant:
    return create_tenant(name="Alice's", owner=alice)


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    settings.PENSTOCK_DESTINATION_ALLOW = "127.0.0.0/8"
    listening = Receiver()
    listening.answers |= {"/refuses": 401, "/hangs": hang}
    yield listening
    listening.close()


@pytest.fixture
def canary() -> Iterator[Canary]:
    made = Canary()
    yield made
    made.close()


def ask(tenant: Tenant, by: User, url: str) -> DestinationTest:
    spec = {"sources": {"web": {}}, "destinations": {"crm": {"type": "http", "url": url}}}
    now = datetime.now(UTC)
    return request_draft_test(tenant=tenant, spec=spec, destination="crm", event=b'{"a": 1}', by=by, now=now)


def answered(row: DestinationTest) -> DestinationTest:
    patience = Patience(20)
    while row.state != DestinationTest.State.DONE:
        assert not patience.is_over, f"{row.url} is {row.state} still"
        time.sleep(0.02)
        row.refresh_from_db()
    return row


def ended(worker: SendingThread) -> None:
    assert worker.thread is not None
    worker.thread.join(20)
    assert not worker.thread.is_alive(), "the thread ends when nothing is left to send"


def tick_apart(worker: SendingThread) -> None:
    """Run a tick as a thread of Celery's pool does."""
    try:
        worker.tick()
    finally:
        connection.close()


def test_requests_are_answered_and_a_hanging_destination_delays_no_other(
    tenant: Tenant, alice: User, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(request, "LONGEST_MS", HANGS_MS)
    worker = SendingThread()
    hanging = ask(tenant, alice, receiver.url("/hangs"))
    began = time.monotonic()
    assert worker.tick() == "sending"
    assert worker.tick() == "nothing to do", "its thread is already running"
    assert TaskRun.objects.filter(task="tester.send").exists()
    good, refused = ask(tenant, alice, receiver.url("/in")), ask(tenant, alice, receiver.url("/refuses"))
    assert (answered(good).status, good.outcome) == (204, "delivered")
    assert (answered(refused).status, refused.outcome, refused.cause) == (401, "dead", "rejected")
    assert time.monotonic() - began < HANGS_MS / 1_000
    assert (answered(hanging).status, hanging.outcome, hanging.cause) == (0, "recoverable", "timeout")
    ended(worker)
    assert [len(receiver.got[path]) for path in ("/in", "/refuses", "/hangs")] == [1, 1, 1]


def test_forbidden_address_is_never_connected_to(
    tenant: Tenant, alice: User, receiver: Receiver, canary: Canary, settings: Settings
):
    worker = SendingThread()
    rows = [ask(tenant, alice, f"http://{host}:{canary.port}/") for host in ("127.0.0.1", "localhost", "127.1")]
    settings.PENSTOCK_DESTINATION_ALLOW = ""  # the address passed the check of its text; the connect refuses it
    worker.tick()
    assert {answered(row).cause for row in rows} == {"destination-forbidden"}
    ended(worker)
    assert canary.heard == 0


def test_two_workers_send_each_request_once(tenant: Tenant, alice: User, receiver: Receiver):
    rows = [ask(tenant, alice, receiver.url("/in")) for _ in range(8)]
    workers = [SendingThread(), SendingThread()]
    ticks = [threading.Thread(target=tick_apart, args=[worker]) for worker in workers]
    for tick in ticks:
        tick.start()
    for tick in ticks:
        tick.join()
    assert {answered(row).outcome for row in rows} == {"delivered"}
    for worker in workers:
        if worker.thread is not None:
            worker.thread.join(20)
    assert len(receiver.got["/in"]) == len(rows)
