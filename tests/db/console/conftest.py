"""Browsers for the shared users, and a pipe with one minute of ledger rows."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from dataplane.ledger.breakdown import Slice
from mgmt.ledger.queries.bucket_range import bucket_at, start_of
from mgmt.models import Membership, Pipe, Replay, Tenant, User
from mgmt.services import add_member
from tests.db.cast import MakeClient
from tests.db.console.replays import MakeReplay
from tests.db.console.truth import BrowserOf, Truth, go_live
from tests.db.console.undelivered import store_dead
from tests.db.replays import publish

_SPENT: Final = {
    Slice.INGEST: 1_000,
    Slice.PROCESS_QUEUE: 1_000,
    Slice.NORMALIZE: 1_000,
    Slice.TRANSMIT_QUEUE: 2_000,
    Slice.TRANSMIT: 7_000,
}


@pytest.fixture
def browser_of() -> BrowserOf:
    """Factory of browsers with a signed-in user."""

    def make(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return make


@pytest.fixture
def alices(browser_of: BrowserOf, alice: User) -> Client:
    """Browser in which Alice is signed in."""
    return browser_of(alice)


@pytest.fixture
def api(client_of: MakeClient, alice: User) -> APIClient:
    """API client in which Alice is signed in."""
    return client_of(alice)


@pytest.fixture
def now() -> datetime:
    """Time at which the test begins."""
    return timezone.now()


@pytest.fixture
def viewer(tenant: Tenant) -> User:
    user = User.objects.create_user("vera")
    add_member(tenant=tenant, user=user, role=Membership.Role.VIEWER)
    return user


@pytest.fixture
def bucket() -> int:
    """Bucket of a minute that is over."""
    return bucket_at(timezone.now()) - 5


@pytest.fixture
def truth(pipe: Pipe, bucket: int) -> Truth:
    """Ten messages to crm in one minute: seven delivered, one dead by 401, one retrying, one lost; with lags."""
    go_live(pipe)
    found = Truth(pipe)
    found.moved(bucket, list(range(10)))
    found.passed(10)
    found.fact(bucket, "transmit:crm", "delivered", list(range(7)))
    found.fact(bucket, "transmit:crm", "dead", [7], "rejected")
    store_dead(pipe, range(7, 8), start_of(bucket))
    found.fact(bucket, "transmit:crm", "parked", [8], "1")
    found.lag(bucket, "ingest", "out", [1_000] * 10)
    found.lag(bucket, "normalize", "in", [2_000] * 10)
    found.lag(bucket, "normalize", "out", [3_000] * 10)
    found.lag(bucket, "normalize", "own", [1_000] * 10)
    found.lag(bucket, "transmit:crm", "in", [5_000] * 7)
    found.lag(bucket, "transmit:crm", "out", [12_000] * 7)
    found.lag(bucket, "transmit:crm", "own", [7_000] * 7)
    found.delivered(bucket, _SPENT, count=7)
    found.attempt(bucket, 6, "delivered")
    found.attempt(bucket, 7, "dead", status=401, reason="rejected")
    found.attempt(bucket, 8, "parked", status=0, reason="timeout")
    return found


@pytest.fixture
def live(pipe: Pipe) -> Pipe:
    """Return the pipe with a live, published revision."""
    publish(pipe)
    return pipe


@pytest.fixture
def make_replay(live: Pipe, alice: User, now: datetime) -> MakeReplay:
    """Factory of replays of the pipe, an hour old."""

    def make(**fields: Any) -> Replay:
        created = now - timedelta(hours=1)
        row = {
            "tenant": live.tenant, "pipe": live, "cell_id": "c1", "by": alice, "created_at": created,
            "bucket": bucket_at(created), "revision": 1, "destinations": ["crm"], "rate_per_s": 50,
            "since": datetime(2026, 11, 26, 8, tzinfo=UTC), "until": datetime(2026, 11, 26, 20, tzinfo=UTC),
            "state_since": created,
        }  # fmt: skip
        return Replay.objects.create(**row | fields)

    return make
