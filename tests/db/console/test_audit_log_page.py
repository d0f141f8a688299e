"""Page and API of the audit log: sentences, changed fields, filters, pages, export, and who may read it."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings
from pytest_django.fixtures import DjangoAssertNumQueries
from rest_framework.test import APIClient

from mgmt.audit import pages
from mgmt.audit.serializers import ENTRY_EXAMPLE, AuditEntryOut
from mgmt.models import AuditEntry, Membership, Pipe, Tenant, User
from mgmt.services import add_member, create_api_key, create_pipe, pause_pipe, publish_revision, rename_pipe
from mgmt.tenancy.models import Grant
from tests.db.cast import MakeClient, MakeSpec
from tests.db.console.truth import BrowserOf, plain

pytestmark = pytest.mark.django_db
PAGE = 12
ALL_CHANGES = ("pipe.created", "member.added", "member.added", "tenant.created")


@pytest.fixture
def url(pipe: Pipe) -> str:
    return reverse("console:audit_log")


def actions_of(browser: Client, url: str, **query: str) -> list[str]:
    return [line.row.action for line in browser.get(url, query).context["get_lines"]()]


def test_page_tells_who_did_what_with_the_values_before_and_after(
    alices: Client, pipe: Pipe, alice: User, bob: User, url: str
):
    rename_pipe(pipe=pipe, name="invoices", by=bob)
    create_api_key(source=pipe.sources.get(), label="web", by=alice)
    shown = plain(alices.get(url).content.decode())
    assert "bob renamed pipe invoices" in shown
    assert "name orders invoices" in shown
    assert "alice created API key web of pipe invoices" in shown
    assert "alice created the tenant Alice's" in shown
    assert "Entries are kept for 400 days" in shown


def test_tokens_staff_and_penstock_are_named_as_such(alices: Client, pipe: Pipe, alice: User, tenant: Tenant, url: str):
    alice.grant = Grant("tok_1", "deploy", tenant.id, "operator")
    rename_pipe(pipe=pipe, name="one", by=alice)
    rename_pipe(pipe=pipe, name="two", by=User.objects.create_user("sam", is_staff=True))
    pause_pipe(pipe=pipe)
    shown = plain(alices.get(url).content.decode())
    for words in ("alice (token deploy) renamed pipe one", "sam (staff) renamed pipe two", "Penstock paused pipe two"):
        assert words in shown


def test_filters_are_in_the_url_and_combine(alices: Client, pipe: Pipe, bob: User, url: str):
    rename_pipe(pipe=pipe, name="invoices", by=bob)
    assert actions_of(alices, url) == ["pipe.renamed", *ALL_CHANGES]
    assert actions_of(alices, url, actor="bob") == ["pipe.renamed"]
    assert actions_of(alices, url, action="pipe.created") == ["pipe.created"]
    assert actions_of(alices, url, pipe=pipe.id) == ["pipe.renamed", "pipe.created"]
    assert actions_of(alices, url, pipe=pipe.id, actor="alice") == ["pipe.created"]
    tomorrow = f"{timezone.now() + timedelta(days=1):%Y-%m-%dT%H:%M}"
    assert actions_of(alices, url, since=tomorrow) == []
    assert actions_of(alices, url, until=tomorrow, actor="bob") == ["pipe.renamed"]
    assert actions_of(alices, url, actor="nobody\0", action="x", since="y", until="z", before="w") == []
    assert "No entries match these filters." in alices.get(url, {"actor": "nobody"}).content.decode()


def test_long_log_has_pages_without_gap_or_repetition(
    alices: Client, pipe: Pipe, alice: User, url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pages, "MOST", 2)
    at = datetime(2026, 11, 1, tzinfo=UTC)
    for number in range(3):  # of one moment
        AuditEntry.objects.create(
            tenant=pipe.tenant, at=at, actor_kind="user", actor="alice", action="pipe.paused", target_name=f"{number}"
        )
    seen: list[str] = []
    older = ""
    for _ in range(10):
        answer = alices.get(f"{url}?{older}")
        seen += [line.row.id for line in answer.context["get_lines"]()]
        if not (older := answer.context["get_older"]()):
            break
    assert seen == list(AuditEntry.objects.order_by("-at", "-id").values_list("id", flat=True))
    assert len(seen) == 7


def test_export_has_the_filtered_entries_and_names_the_retention(
    alices: Client, pipe: Pipe, bob: User, url: str, settings: Settings
):
    settings.PENSTOCK_AUDIT_KEEP_D = 30
    rename_pipe(pipe=pipe, name="invoices", by=bob)
    answer = alices.get(url, {"format": "csv", "actor": "bob"})
    assert answer["Content-Disposition"] == 'attachment; filename="audit-log-kept-30-days.csv"'
    (row,) = csv.DictReader(io.StringIO(b"".join(answer).decode()))
    assert (row["sentence"], row["after"]) == ("bob renamed pipe invoices", '{"name": "invoices"}')
    lines = b"".join(alices.get(url, {"format": "jsonl"})).splitlines()
    assert [json.loads(line)["action"] for line in lines] == ["pipe.renamed", *ALL_CHANGES]


def test_pipes_settings_link_to_its_entries_for_owners(alices: Client, browser_of: BrowserOf, bob: User, pipe: Pipe):
    link = f'href="{reverse("console:audit_log")}?pipe={pipe.id}"'
    settings = reverse("console:settings", args=[pipe.id])
    assert link in alices.get(settings).content.decode()
    assert link not in browser_of(bob).get(settings).content.decode()


def test_pipe_of_another_of_the_owners_tenants_opens_that_tenants_log(
    browser_of: BrowserOf, charlie: User, alice: User, pipe: Pipe, url: str, a_spec: MakeSpec
):
    add_member(tenant=charlie.tenants.get(), user=alice, role=Membership.Role.OWNER)
    foreign = create_pipe(tenant=charlie.tenants.get(), name="charlies", spec=a_spec(), author=charlie)
    for one in (pipe, foreign):
        assert actions_of(browser_of(alice), url, pipe=one.id) == ["pipe.created"]


@pytest.mark.parametrize("role", Membership.Role)
def test_only_owners_read_the_log(
    browser_of: BrowserOf, client_of: MakeClient, tenant: Tenant, pipe: Pipe, role: Membership.Role, url: str
):
    member = User.objects.create_user("dora")
    add_member(tenant=tenant, user=member, role=role)
    expected = 200 if role == Membership.Role.OWNER else 403
    for query in ("", f"?pipe={pipe.id}", "?format=csv"):
        assert browser_of(member).get(f"{url}{query}").status_code == expected
    assert client_of(member).get(f"/api/v1/tenants/{tenant.id}/audit-log/").status_code == expected
    rail = browser_of(member).get("/").content.decode()
    assert (f'href="{url}"' in rail) == (expected == 200)


def test_owner_of_another_tenant_sees_nothing_of_it(
    browser_of: BrowserOf, client_of: MakeClient, charlie: User, tenant: Tenant, pipe: Pipe, url: str
):
    assert actions_of(browser_of(charlie), url) == ["member.added", "tenant.created"]
    assert browser_of(charlie).get(url, {"pipe": pipe.id}).status_code == 404
    assert client_of(charlie).get(f"/api/v1/tenants/{tenant.id}/audit-log/").status_code == 404


def test_user_without_a_tenant_gets_404(browser_of: BrowserOf, db: None):
    assert browser_of(User.objects.create_user("dora")).get("/audit/").status_code == 404


def test_query_count_is_constant(
    alices: Client, pipe: Pipe, alice: User, a_spec: MakeSpec, url: str,
    django_assert_num_queries: DjangoAssertNumQueries,
):  # fmt: skip
    alices.get(url)
    with django_assert_num_queries(PAGE):
        alices.get(url)
    for number in range(1, 5):
        publish_revision(pipe=pipe, spec=a_spec(), based_on=number, author=alice)
    with django_assert_num_queries(PAGE):
        alices.get(url)


def test_api_lists_filters_and_paginates(api: APIClient, pipe: Pipe, bob: User, tenant: Tenant):
    rename_pipe(pipe=pipe, name="invoices", by=bob)
    path = f"/api/v1/tenants/{tenant.id}/audit-log/"
    first = api.get(path, {"limit": 2}).json()
    rest = api.get(first["next"]).json()
    found = first["results"] + rest["results"]
    assert [row["action"] for row in found] == ["pipe.renamed", "pipe.created", "member.added"] + ["member.added"] * (
        len(rest["results"]) > 1
    )
    assert (found[0]["sentence"], found[0]["before"]) == ("bob renamed pipe invoices", {"name": "orders"})
    assert len(api.get(path, {"pipe": pipe.id}).json()["results"]) == 2
    assert len(api.get(path, {"actor": "bob", "action": "pipe.renamed"}).json()["results"]) == 1
    assert api.get(path, {"since": "2100-01-01T00:00:00Z"}).json()["results"] == []
    for wrong in ({"action": "pipe.painted"}, {"since": "yesterday"}, {"user": "bob"}):
        assert api.get(path, wrong).json()["code"] == "parameter-invalid"


def test_example_has_the_fields_of_an_entry():
    assert list(ENTRY_EXAMPLE) == list(AuditEntryOut().get_fields())
