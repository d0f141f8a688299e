"""Windows in the API and on their page: the list, the late events, and access to current values."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from pyroaring import BitMap64
from rest_framework.test import APIClient

from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import FactRow, Pipe, Topic, User
from mgmt.services import create_pipe
from tests.db.cast import MakeSpec
from tests.db.console.truth import go_live

pytestmark = pytest.mark.django_db
BY_SHOP = {
    "span": {"kind": "tumbling", "size_s": 60},
    "by": ["shop"],
    "late_s": 30,
    "values": {"n": {"op": "count"}, "total": {"op": "sum", "of": "amount"}},
}


@pytest.fixture
def windowed(alice: User, tenant: Any, a_spec: MakeSpec) -> Pipe:
    pipe = create_pipe(tenant=tenant, name="windowed", spec=a_spec() | {"windows": {"by-shop": BY_SHOP}}, author=alice)
    go_live(pipe)
    pipe.refresh_from_db()
    return pipe


def late(pipe: Pipe, count: int, days_ago: int = 0) -> None:
    at = datetime.now(UTC) - timedelta(days=days_ago)
    FactRow.objects.create(
        pipe_id=pipe.id, bucket=bucket_at(at), node="window:by-shop", fact="sent", detail="late",
        audit_partition=0, positions=BitMap64(range(count)).serialize(), count=count,
    )  # fmt: skip


def as_user(user: User) -> APIClient:
    client = APIClient(raise_request_exception=False)
    client.force_login(user)
    return client


def test_windows_are_listed_with_their_late_events(windowed: Pipe, alice: User):
    late(windowed, 3)
    late(windowed, 40, days_ago=2)  # only those of the last day count
    (found,) = as_user(alice).get(f"/api/v1/pipes/{windowed.id}/windows/").json()["results"]
    assert found == {
        "name": "by-shop",
        "span": {"kind": "tumbling", "size_s": 60},
        "by": ["shop"],
        "late_s": 30,
        "late": 3,
    }


def test_no_pane_is_open_before_the_cell_has_a_topic_for_panes(windowed: Pipe, alice: User):
    answer = as_user(alice).get(f"/api/v1/pipes/{windowed.id}/windows/by-shop/?by=berlin")
    assert answer.json() == {"window": "by-shop", "by": {"shop": "berlin"}, "as_of": None, "open": []}


@pytest.mark.parametrize("query", ["", "?by=berlin&by=rome"])
def test_key_needs_a_value_for_each_of_its_paths(windowed: Pipe, alice: User, query: str):
    answer = as_user(alice).get(f"/api/v1/pipes/{windowed.id}/windows/by-shop/{query}")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["detail"].startswith("needs 1 value, for shop, got ")


def test_unreachable_brokers_are_a_503_and_reported_on_the_page(
    windowed: Pipe, alice: User, client: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mgmt.messages.queries.records.READ_S", 0.2)  # no brokers here
    Topic.objects.create(cell_id="c1", purpose="panes", name="penstock.c1.panes.g1", topic_id="x", partitions=4)
    assert as_user(alice).get(f"/api/v1/pipes/{windowed.id}/windows/by-shop/?by=berlin").status_code == 503
    client.force_login(alice)
    page = client.get(f"/pipes/{windowed.id}/windows/?window=by-shop&by=berlin").content.decode()
    assert "The current values are not available: the brokers do not respond." in page


def test_page_shows_each_window_with_its_key_and_late_events(windowed: Pipe, alice: User, client: Client):
    late(windowed, 3)
    client.force_login(alice)
    page = client.get(f"/pipes/{windowed.id}/windows/").content.decode()
    assert "every 60 s by shop" in page
    assert '<dd class="wait">3</dd>' in page


@pytest.mark.parametrize("path", ["", "by-shop/?by=berlin"])
def test_windows_of_another_tenant_are_not_found(windowed: Pipe, charlie: User, path: str):
    assert as_user(charlie).get(f"/api/v1/pipes/{windowed.id}/windows/{path}").status_code == 404


def test_window_missing_from_the_pipe_is_not_found(windowed: Pipe, alice: User):
    assert as_user(alice).get(f"/api/v1/pipes/{windowed.id}/windows/other/?by=x").status_code == 404
