"""Quotas of tenants: staff set them with an audit record, and requests beyond them are refused."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from controlplane.provisioner.records import desired_records
from dataplane.spec import SpecError
from dataplane.tables.quotas import Quotas
from dataplane.tables.records import QuotaRecord
from mgmt.models import ApiKey, ControlAction, Heartbeat, Pipe, Tenant, TenantQuota, Usage, User
from mgmt.quotas.queries import quota_lines, quotas_for
from mgmt.services import (
    InvalidValue,
    QuotaExceededError,
    close_pipe,
    create_api_key,
    create_lookup_table,
    create_pipe,
    publish_revision,
    reopen_pipe,
    revoke_api_key,
    set_quota,
)
from mgmt.tail import TailQuotaError
from mgmt.tail.seats import Seats
from tests.db.cast import MakeClient, MakeSpec
from tests.db.console.truth import BrowserOf

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_superuser("root")


@pytest.fixture
def browser_of() -> BrowserOf:
    def make(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return make


def limit(tenant: Tenant, by: User, **limits: int | None) -> TenantQuota:
    return set_quota(tenant=tenant, limits=limits, reason="a test", by=by, now=timezone.now())


def used(tenant: Tenant) -> dict[str, int | None]:
    return {line.kind.name: line.used for line in quota_lines(tenant, timezone.now())}


# -- setting them ------------------------------------------------------------------------------------------------------


def test_tenant_has_the_default_quotas_until_staff_set_a_limit(tenant: Tenant, root: User, settings: Settings):
    settings.PENSTOCK_QUOTAS = Quotas(pipes=7)
    assert quotas_for(tenant.id) == Quotas(pipes=7)
    limit(tenant, root, events_per_s=10)
    limit(tenant, root, pipes=3)
    assert quotas_for(tenant.id) == Quotas(pipes=3, events_per_s=10), "limits that were set before are kept"
    limit(tenant, root, pipes=None)
    assert quotas_for(tenant.id) == Quotas(pipes=7, events_per_s=10)


def test_every_quota_change_is_in_the_audit_with_the_previous_value(tenant: Tenant, root: User):
    limit(tenant, root, events_per_s=10)
    limit(tenant, root, events_per_s=None, pipes=3)
    first, last = ControlAction.objects.filter(action="set-quota").order_by("id")
    assert first.detail == {"tenant": tenant.id, "before": {}, "after": {"events_per_s": 10}}
    assert last.detail == {"tenant": tenant.id, "before": {"events_per_s": 10}, "after": {"pipes": 3}}
    assert last.reason == "Alice's: events_per_s 10 to default, pipes default to 3. a test"
    assert last.author == root


@pytest.mark.parametrize(
    ("limits", "field"), [({"events_per_s": 0}, "events_per_s"), ({"friends": 1}, "friends"), ({"pipes": -1}, "pipes")]
)
def test_invalid_limit_is_refused_and_changes_nothing(tenant: Tenant, root: User, limits: dict[str, int], field: str):
    with pytest.raises(InvalidValue) as refused:
        limit(tenant, root, **limits)
    assert refused.value.field == field
    assert not TenantQuota.objects.exists()


def test_quota_change_needs_a_reason(tenant: Tenant, root: User):
    with pytest.raises(InvalidValue, match="the control audit shows it"):
        set_quota(tenant=tenant, limits={"pipes": 1}, reason=" ", by=root, now=timezone.now())


def test_quota_record_for_ingest_has_the_limits_set_by_staff_and_a_growing_version(tenant: Tenant, root: User):
    limit(tenant, root, events_per_s=10, pipes=3)
    assert desired_records([f"quota/{tenant.id}"]).records == [QuotaRecord(tenant.id, 1, events_per_s=10)]
    limit(tenant, root, bytes_per_s=5_000)
    (record,) = desired_records([f"quota/{tenant.id}"]).records
    assert record == QuotaRecord(tenant.id, 2, events_per_s=10, bytes_per_s=5_000)


# -- what they refuse --------------------------------------------------------------------------------------------------


def test_pipe_beyond_the_quota_is_refused(tenant: Tenant, pipe: Pipe, alice: User, root: User, a_spec: MakeSpec):
    limit(tenant, root, pipes=2)
    other = create_pipe(tenant=tenant, name="second", spec=a_spec(), author=alice)
    with pytest.raises(QuotaExceededError, match="You have 2 of 2 pipes"):
        create_pipe(tenant=tenant, name="third", spec=a_spec(), author=alice)
    close_pipe(pipe=other)
    create_pipe(tenant=tenant, name="third", spec=a_spec(), author=alice)
    with pytest.raises(QuotaExceededError):
        reopen_pipe(pipe=other)
    assert used(tenant)["pipes"] == 2


def test_lower_limit_removes_nothing(tenant: Tenant, pipe: Pipe, alice: User, root: User, a_spec: MakeSpec):
    limit(tenant, root, pipes=0, destinations_per_pipe=1, api_keys=0)
    pipe.refresh_from_db()
    assert pipe.state == Pipe.State.ACTIVE
    assert publish_revision(pipe=pipe, spec=a_spec(), based_on=1, author=alice).number == 2


def test_api_key_beyond_the_quota_is_refused(tenant: Tenant, pipe: Pipe, root: User):
    limit(tenant, root, api_keys=1)
    source = pipe.sources.get()
    key, _ = create_api_key(source=source)
    with pytest.raises(QuotaExceededError, match="1 of 1 API keys"):
        create_api_key(source=source)
    revoke_api_key(key=key)
    create_api_key(source=source)
    assert used(tenant)["api_keys"] == 1


def with_topics(spec: dict[str, Any], *partitions: int) -> dict[str, Any]:
    topics = {f"t{number}": {"type": "topic", "partitions": count} for number, count in enumerate(partitions)}
    return spec | {"destinations": spec["destinations"] | topics}


def test_spec_with_too_many_destinations_is_refused_at_their_path(
    tenant: Tenant, pipe: Pipe, alice: User, root: User, a_spec: MakeSpec
):
    limit(tenant, root, destinations_per_pipe=2)
    with pytest.raises(SpecError, match="needs at most 2, which is your quota, got 3") as refused:
        publish_revision(pipe=pipe, spec=with_topics(a_spec(), 1, 1), based_on=1, author=alice)
    assert refused.value.path == "$.destinations"


def with_table_sources(spec: dict[str, Any], count: int) -> dict[str, Any]:
    reading = {f"t{number}": {"type": "table", "table": "users"} for number in range(count)}
    return spec | {"sources": spec["sources"] | reading}


def test_table_sources_are_counted_over_all_open_pipes(
    tenant: Tenant, pipe: Pipe, alice: User, root: User, a_spec: MakeSpec
):
    create_lookup_table(tenant=tenant, name="users")
    limit(tenant, root, table_sources=3)
    publish_revision(pipe=pipe, spec=with_table_sources(a_spec(), 1), based_on=1, author=alice)
    second = create_pipe(tenant=tenant, name="second", spec=with_table_sources(a_spec(), 2), author=alice)
    assert used(tenant)["table_sources"] == 3
    with pytest.raises(SpecError, match="your quota is 3 sources of type table") as refused:
        publish_revision(pipe=pipe, spec=with_table_sources(a_spec(), 2), based_on=2, author=alice)
    assert refused.value.path == "$.sources.t1"
    assert publish_revision(pipe=pipe, spec=with_table_sources(a_spec(), 1), based_on=2, author=alice).number == 3
    close_pipe(pipe=second)
    assert used(tenant)["table_sources"] == 1
    assert publish_revision(pipe=pipe, spec=with_table_sources(a_spec(), 2), based_on=3, author=alice).number == 4
    with pytest.raises(QuotaExceededError, match="You have 2 of 3 table sources, and this pipe has 2"):
        reopen_pipe(pipe=second)


def test_topics_and_their_partitions_are_counted_over_all_pipes(
    tenant: Tenant, pipe: Pipe, alice: User, root: User, a_spec: MakeSpec
):
    limit(tenant, root, topics=2, partitions=10)
    publish_revision(pipe=pipe, spec=with_topics(a_spec(), 4), based_on=1, author=alice)
    create_pipe(tenant=tenant, name="second", spec=with_topics(a_spec(), 6), author=alice)
    assert (used(tenant)["topics"], used(tenant)["partitions"]) == (2, 10)
    with pytest.raises(SpecError, match="your quota is 2 destinations of type topic"):
        create_pipe(tenant=tenant, name="third", spec=with_topics(a_spec(), 1), author=alice)
    with pytest.raises(SpecError, match="your quota is 10 partitions"):
        publish_revision(pipe=pipe, spec=with_topics(a_spec(), 5), based_on=2, author=alice)
    assert publish_revision(pipe=pipe, spec=with_topics(a_spec(), 4), based_on=2, author=alice).number == 3


def test_usage_of_other_tenants_is_not_counted(tenant: Tenant, pipe: Pipe, charlie: User, root: User, a_spec: MakeSpec):
    theirs = Tenant.objects.get(memberships__user=charlie)
    limit(theirs, root, pipes=1)
    create_pipe(tenant=theirs, name="first", spec=a_spec(), author=charlie)
    assert (used(theirs)["pipes"], used(tenant)["pipes"]) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_exactly_one_of_many_concurrent_pipe_creations_at_the_limit_succeeds(
    tenant: Tenant, alice: User, root: User, a_spec: MakeSpec
):
    limit(tenant, root, pipes=1)
    ready = threading.Barrier(8)

    def make(number: int) -> str:
        ready.wait(10)
        try:
            create_pipe(tenant=tenant, name=f"pipe {number}", spec=a_spec(), author=alice)
        except QuotaExceededError:
            return "refused"
        finally:
            connection.close()
        return "made"

    with ThreadPoolExecutor(8) as pool:
        ended = list(pool.map(make, range(8)))
    assert sorted(ended) == ["made", *["refused"] * 7]
    assert Pipe.objects.count() == 1


def test_live_tails_are_limited_by_tenant_and_by_user_and_released_once():
    seats = Seats()

    def take(tenant: str, user: str) -> Any:
        return seats.take(tenant=tenant, user=user, most=3, most_per_user=2)

    first, _, _ = take("t", "alice"), take("t", "alice"), take("t", "bob")
    with pytest.raises(TailQuotaError, match="Your team has 3 live tails open"):
        take("t", "carol")
    take("u", "alice")
    first.leave()
    first.leave()
    assert seats.open_by("t") == 2
    take("t", "alice")
    with pytest.raises(TailQuotaError):
        take("t", "alice")


def test_live_tails_of_one_user_are_limited():
    seats = Seats()
    seats.take(tenant="t", user="alice", most=9, most_per_user=1)
    with pytest.raises(TailQuotaError, match="You have 1 live tails open"):
        seats.take(tenant="t", user="alice", most=9, most_per_user=1)


# -- where they are shown ----------------------------------------------------------------------------------------------


def test_current_rate_is_summed_over_ingest_replicas(tenant: Tenant):
    for number, events in ((1, 30.0), (2, 12.4)):
        Heartbeat.objects.create(
            cell="", writer=f"ingest-{number}", kind="ingest", epoch=0, incarnation="1", state="running",
            table_offset=0, at=timezone.now(), body={"taken": {tenant.id: [events, 1_000.0]}},
        )  # fmt: skip
    Heartbeat.objects.create(
        cell="", writer="ingest-3", kind="ingest", epoch=0, incarnation="1", state="running",
        table_offset=0, at=timezone.now() - timedelta(minutes=1), body={"taken": {tenant.id: [500.0, 0.0]}},
    )  # fmt: skip
    assert (used(tenant)["events_per_s"], used(tenant)["bytes_per_s"]) == (42, 2_000)


def test_usage_page_shows_the_tenants_quotas_and_its_refused_events(
    browser_of: BrowserOf, alice: User, tenant: Tenant, pipe: Pipe, root: User
):
    limit(tenant, root, events_per_s=1_234)
    Usage.objects.create(
        pipe=pipe, day=timezone.now().date(), cell="", kind="ingest", units=5, size_bytes=1, cpu_us=1, refused=678
    )
    page = browser_of(alice).get("/usage/").content.decode()
    assert "1\u202f234" in page
    assert "678" in page
    assert "Over quota" in page


def test_tenant_reads_only_its_own_quotas_through_the_api(
    client_of: MakeClient, alice: User, charlie: User, tenant: Tenant, root: User
):
    limit(tenant, root, pipes=5)
    answer = client_of(alice).get(f"/api/v1/tenants/{tenant.id}/quotas/").json()
    assert answer["tenant"] == tenant.id
    (pipes,) = [line for line in answer["quotas"] if line["kind"] == "pipes"]
    assert (pipes["limit"], pipes["used"], pipes["own"]) == (5, 0, True)
    assert client_of(charlie).get(f"/api/v1/tenants/{tenant.id}/quotas/").status_code == 404


def test_staff_set_quotas_through_the_api_and_others_get_404(
    client_of: MakeClient, alice: User, tenant: Tenant, root: User
):
    url = f"/api/v1/staff/quotas/{tenant.id}/"
    assert client_of(alice).get(url).status_code == client_of(alice).patch(url, {}).status_code == 404
    body = {"limits": {"pipes": 5, "topics": None}, "reason": "paid for more"}
    answer = client_of(root).patch(url, body, format="json")
    assert answer.status_code == 200, answer.content
    assert quotas_for(tenant.id).pipes == 5
    wrong = client_of(root).patch(url, {"limits": {"pipes": -1, "friends": 3}, "reason": "x"}, format="json")
    assert wrong.status_code == 400
    assert {error["pointer"] for error in wrong.json()["errors"]} == {"#/limits/pipes", "#/limits/friends"}


def test_exceeded_quota_is_a_conflict_in_the_api(
    client_of: MakeClient, alice: User, tenant: Tenant, root: User, a_spec: MakeSpec
):
    limit(tenant, root, pipes=0)
    answer = client_of(alice).post("/api/v1/pipes/", {"name": "x", "spec": a_spec()}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (409, "quota-exceeded")
    assert "You have 0 of 0 pipes" in answer.json()["detail"]


def test_staff_page_shows_tenants_over_quota_and_sets_limits(
    browser_of: BrowserOf, alice: User, tenant: Tenant, pipe: Pipe, root: User
):
    Usage.objects.create(
        pipe=pipe, day=timezone.now().date(), cell="", kind="ingest", units=5, size_bytes=1, cpu_us=1, refused=678
    )
    browser = browser_of(root)
    assert "678" in browser.get("/staff/quotas/").content.decode()
    url = f"/staff/quotas/{tenant.id}/"
    saved = browser.post(url, {"pipes": "5", "events_per_s": "1 000", "reason": "a big one"}, follow=True)
    assert "a big one" in saved.content.decode()
    assert (quotas_for(tenant.id).pipes, quotas_for(tenant.id).events_per_s) == (5, 1_000)
    wrong = browser.post(url, {"pipes": "many", "reason": "typed wrong"})
    assert wrong.status_code == 422
    page = wrong.content.decode()
    assert "Pipes: needs a whole number" in page
    assert 'value="typed wrong"' in page
    browser.post(url, {"reason": "back to normal"})
    assert quotas_for(tenant.id) == Quotas()
    assert browser_of(alice).get(url).status_code == 404


def test_editor_reports_the_used_up_quota_and_keeps_the_input(
    browser_of: BrowserOf, alice: User, tenant: Tenant, root: User
):
    limit(tenant, root, pipes=0)
    form = {
        "mode": "form",
        "action": "plan",
        "name": "orders",
        "source.name": "web",
        "destination.name": ["main"],
        "destination.kind": ["http"],
        "destination.url": ["https://main.example.com/in"],
    }
    answer = browser_of(alice).post("/pipes/new/", form)
    assert answer.status_code == 422
    assert "You have 0 of 0 pipes" in answer.content.decode()
    assert "https://main.example.com/in" in answer.content.decode()


def test_settings_page_reports_an_api_key_over_quota(
    browser_of: BrowserOf, alice: User, tenant: Tenant, pipe: Pipe, root: User
):
    limit(tenant, root, api_keys=0)
    answer = browser_of(alice).post(f"/pipes/{pipe.id}/keys/", {"source": pipe.sources.get().name}, follow=True)
    assert "You have 0 of 0 API keys" in answer.content.decode()
    assert not ApiKey.objects.exists()


def test_command_shows_and_sets_quotas(tenant: Tenant, root: User, capsys: pytest.CaptureFixture[str]):
    call_command("set_quota", tenant.name, "pipes=4", "topics=default", by="root", reason="by hand")
    assert json.loads(capsys.readouterr().out)["quotas"]["pipes"] == {"used": 0, "limit": 4}
    call_command("set_quota", tenant.id)
    assert json.loads(capsys.readouterr().out)["quotas"]["pipes"] == {"used": 0, "limit": 4}
    with pytest.raises(CommandError, match="needs kind=limit"):
        call_command("set_quota", tenant.id, "pipes", by="root", reason="x")
    with pytest.raises(CommandError, match="User"):
        call_command("set_quota", tenant.id, "pipes=1", by="nobody", reason="x")
