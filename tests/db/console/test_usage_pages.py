"""Usage pages, exports and API: a tenant sees its own usage, staff see all and the unattributed part."""

import csv
import io
import json
from datetime import date, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries

from mgmt.models import Pipe, Tenant, Usage, User
from mgmt.services import create_pipe, create_tenant
from tests.db.cast import MakeClient, MakeSpec
from tests.db.console.truth import BrowserOf

pytestmark = pytest.mark.django_db
PAGE, STAFFS_PAGE = 20, 8
S = 1_000_000


def today() -> date:
    return timezone.now().date()


def used(pipe: Pipe | None, kind: str, cpu_s: float, units: int = 0, size_bytes: int = 0, days_ago: int = 0) -> None:
    Usage.objects.create(
        pipe=pipe, day=today() - timedelta(days=days_ago), cell="" if kind == "ingest" else "c1", kind=kind,
        units=units, size_bytes=size_bytes, cpu_us=round(cpu_s * S),
    )  # fmt: skip


@pytest.fixture
def others(charlie: User, a_spec: MakeSpec) -> Pipe:
    """Pipe of Charlie's tenant, with usage of its own."""
    tenant = Tenant.objects.get(memberships__user=charlie)
    pipe = create_pipe(tenant=tenant, name="secret", spec=a_spec(), author=charlie)
    used(pipe, "process", 50, 7_777)
    return pipe


@pytest.fixture
def orders(pipe: Pipe, tenant: Tenant, alice: User, a_spec: MakeSpec) -> Pipe:
    """Usage of orders (10 s today, 4 s ten days ago) and refunds (30 s); 20 s of process are unattributed."""
    refunds = create_pipe(tenant=tenant, name="refunds", spec=a_spec(), author=alice)
    used(pipe, "ingest", 1, 1_200, 2_500_000)
    used(pipe, "process", 4, 1_250, 2_600_000)
    used(pipe, "transmit", 3, 1_300, 2_700_000)
    used(pipe, "transmit-retry", 2, 50, 300_000)
    used(pipe, "process", 4, 99, days_ago=10)
    used(refunds, "process", 30, 10)
    used(None, "process", 20)
    return pipe


def lines_of(browser: Client, url: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in b"".join(browser.get(url)).splitlines()]


def test_tenant_sees_the_usage_of_its_own_pipes(alices: Client, orders: Pipe, others: Pipe):
    page = alices.get("/usage/").content.decode()
    assert "refunds" in page
    assert "1\u202f350" in page, "attempts of both kinds of transmit lane"
    assert "2.5\u202fMB" in page
    assert "40.0" in page, "total CPU seconds"
    assert "25.0\u202f%" in page, "the share of orders"
    assert others.name not in page
    assert "7\u202f777" not in page


def test_copies_that_a_replay_wrote_to_a_topic_are_attempts(alices: Client, orders: Pipe):
    used(orders, "replay", 1, 100_000, 4_000_000)
    page = alices.get("/usage/").content.decode()
    assert "101\u202f350" in page
    assert "41.0" in page, "total CPU seconds"


def test_longer_range_includes_earlier_days(alices: Client, orders: Pipe):
    long_ago = str(today() - timedelta(days=10))
    assert f'<th scope="row">{long_ago}</th>' not in alices.get("/usage/").content.decode()
    assert f'<th scope="row">{long_ago}</th>' in alices.get("/usage/?range=30d").content.decode()
    assert alices.get("/usage/?range=ever").status_code == 200


def test_single_pipe_shows_its_own_days(alices: Client, orders: Pipe):
    page = alices.get(f"/usage/?pipe={orders.id}").content.decode()
    assert "Usage of orders" in page
    assert "10.0" in page
    assert "refunds" not in page
    assert f"/api/v1/pipes/{orders.id}/usage/" in page


def test_other_tenant_gets_404_for_a_pipe(browser_of: BrowserOf, charlie: User, orders: Pipe):
    assert browser_of(charlie).get(f"/usage/?pipe={orders.id}").status_code == 404


def test_file_export_has_each_pipe_and_day_of_the_page(alices: Client, orders: Pipe, others: Pipe):
    lines = lines_of(alices, f"/usage/?pipe={orders.id}&range=30d&format=jsonl")
    assert [(line["day"], line["name"], line["events"], line["attempts"], line["cpu_us"]) for line in lines] == [
        (str(today()), "orders", 1_200, 1_350, 10 * S),
        (str(today() - timedelta(days=10)), "orders", 0, 0, 4 * S),
    ]
    text = b"".join(alices.get("/usage/?format=csv")).decode()
    assert {row["name"] for row in csv.DictReader(io.StringIO(text))} == {"orders", "refunds"}


def test_empty_usage_is_reported(alices: Client, pipe: Pipe):
    assert "No usage in this period." in alices.get("/usage/").content.decode()


def test_user_without_a_tenant_gets_404(browser_of: BrowserOf):
    assert browser_of(User.objects.create_user("dora")).get("/usage/").status_code == 404


@pytest.fixture
def admin(browser_of: BrowserOf) -> Client:
    return browser_of(User.objects.create_superuser("admin"))


def test_staff_see_every_tenant_and_unattributed_usage_and_the_total_includes_both(
    admin: Client, orders: Pipe, others: Pipe
):
    page = admin.get("/staff/usage/").content.decode()
    assert "unattributed" in page
    lines = lines_of(admin, "/staff/usage/?format=jsonl")
    assert {line["tenant"]: line["cpu_us"] // S for line in lines} == {"Alice's": 40, "": 20, "Charlie's": 50}
    assert "110.0" in page
    assert "19.2\u202f%" in page, "unattributed share of the process lanes"


def test_non_staff_users_get_404(alices: Client, orders: Pipe):
    assert alices.get("/staff/usage/").status_code == 404
    assert alices.get("/api/v1/staff/usage/").status_code == 404


def test_api_returns_a_pipes_days_and_their_total(client_of: MakeClient, alice: User, orders: Pipe):
    found = client_of(alice).get(f"/api/v1/pipes/{orders.id}/usage/?range=30d").json()
    assert [day["day"] for day in found["results"]] == [str(today()), str(today() - timedelta(days=10))]
    assert found["results"][0]["amount"] == {
        "events": 1_200, "in_bytes": 2_500_000, "runs": 1_250, "attempts": 1_350, "out_bytes": 3_000_000,
        "cpu_us": 10 * S, "refused": 0,
    }  # fmt: skip
    assert found["total"]["cpu_us"] == 14 * S


def test_unknown_range_is_refused(client_of: MakeClient, alice: User, orders: Pipe):
    answer = client_of(alice).get(f"/api/v1/pipes/{orders.id}/usage/?range=1y")
    assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (400, "range")


def test_api_returns_all_usage_to_staff_and_the_sums_agree(client_of: MakeClient, orders: Pipe, others: Pipe):
    found = client_of(User.objects.create_superuser("admin")).get("/api/v1/staff/usage/").json()
    assert found["total"]["cpu_us"] == 110 * S
    assert sum(one["amount"]["cpu_us"] for one in found["tenants"]) == 110 * S
    assert sum(one["cpu_us"] for one in found["groups"]) == 110 * S
    process = next(one for one in found["groups"] if one["kind"] == "process")
    assert (process["cell"], process["idle_us"]) == ("c1", 20 * S)


def test_pages_have_a_constant_query_count_for_any_number_of_tenants_and_pipes(
    alices: Client,
    admin: Client,
    orders: Pipe,
    tenant: Tenant,
    alice: User,
    a_spec: MakeSpec,
    django_assert_num_queries: DjangoAssertNumQueries,
):
    alices.get("/usage/"), admin.get("/staff/usage/")
    for number in range(3):
        with django_assert_num_queries(PAGE):
            alices.get("/usage/")
        with django_assert_num_queries(STAFFS_PAGE):
            admin.get("/staff/usage/")
        create_tenant(name=f"more {number}", owner=User.objects.create_user(f"owner {number}"))
        used(create_pipe(tenant=tenant, name=f"more {number}", spec=a_spec(), author=alice), "process", 1)
