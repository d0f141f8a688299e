"""Stream-fed look-up tables in the API, dry runs and journeys: rows come from the hosts of the data plane.

Postgres has other rows, or none, under the same keys: a reader of Postgres fails these tests.
"""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings
from rest_framework.test import APIClient

from dataplane.ledger.meta import MessageMeta
from dataplane.names import WIRE_VERSION
from dataplane.tables.access_tokens import read_access
from dataplane.tables.lookups import VERSIONS_PER_US
from dataplane.tables.query_protocol import MOST_READ
from mgmt.lookups.queries.feeds import feeds_of, is_stream_fed
from mgmt.lookups.queries.rows import all_rows
from mgmt.lookups.queries.table_hosts import TableUnreachable
from mgmt.lookups.row_files import checked_row
from mgmt.messages.queries.recompute import Recomputation
from mgmt.messages.queries.records import StoredRecord
from mgmt.models import LookupRow, LookupTable, Pipe, PipeRevision, Tenant, User
from mgmt.pipes.queries.dry_run import dry_run_spec, sample_body
from mgmt.sandbox import SandboxRefused
from mgmt.services import create_lookup_table, create_pipe, put_row
from tests.db.cast import MakeClient, MakeSpec
from tests.support.table_service import TableService

TABLES = "/api/v1/lookup-tables/"
CHANGED = datetime(2026, 11, 27, 12, 0, 0, 250_000, UTC)
VERSION = int(CHANGED.timestamp() * 1_000_000) * VERSIONS_PER_US


@pytest.fixture
def table(tenant: Tenant) -> LookupTable:
    """Table with a row that was entered before a pipe fed the table."""
    table = create_lookup_table(tenant=tenant, name="users")
    put_row(table=table, row=checked_row(1, "u-1", {"name": "of Postgres"}))
    return table


@pytest.fixture
def feeding(tenant: Tenant, alice: User, table: LookupTable, a_spec: MakeSpec) -> Pipe:
    """Pipe whose destination `people` writes the table."""
    spec = a_spec() | {"destinations": {"people": {"type": "table", "table": "users", "key": "body.id"}}}
    return create_pipe(tenant=tenant, name="sign-ups", spec=spec, author=alice)


@pytest.fixture
def on_hosts(hosts: TableService, table: LookupTable, feeding: Pipe) -> TableService:
    """Host that has the table with rows of the pipe."""
    rows: dict[str, tuple[int, str | None]] = {
        "u-1": (VERSION, '{"name":"of the host","n":1.50}'),
        "u-2": (VERSION + 1, '{"name":"Bob"}'),
        "u/3": (7, '{"name":"manual"}'),
        "gone": (VERSION, None),
    }
    hosts.fill(table.id, table.tenant_id, table.name, rows)
    return hosts


@pytest.fixture
def api(bob: User, tenant: Tenant, client_of: MakeClient) -> APIClient:
    client = client_of(bob)
    client.raise_request_exception = False  # Django's client also raises what is answered with 503
    return client


def enriched(spec: dict[str, Any]) -> dict[str, Any]:
    return spec | {"enrich": [{"table": "users", "key": "body.who", "into": "user"}]}


def test_row_is_that_of_the_host(api: APIClient, table: LookupTable, on_hosts: TableService):
    assert api.get(f"{TABLES}{table.id}/rows/u-1/").json() == {"name": "of the host", "n": 1.5}
    assert api.get(f"{TABLES}{table.id}/rows/u%2F3/").json() == {"name": "manual"}
    for key in ("gone", "never", "%00", "k" * 500):
        assert api.get(f"{TABLES}{table.id}/rows/{key}/").status_code == 404


def test_rows_by_prefix_are_those_of_the_host_page_by_page(api: APIClient, table: LookupTable, on_hosts: TableService):
    url = f"{TABLES}{table.id}/rows/"
    first = api.get(url, {"prefix": "u", "limit": "2"}).json()
    assert [row["key"] for row in first["rows"]] == ["u-1", "u-2"]
    assert first["rows"][0] == {
        "key": "u-1",
        "row": {"name": "of the host", "n": 1.5},
        "version": str(VERSION),
        "changed_at": "2026-11-27T12:00:00.250000Z",
    }
    second = api.get(url, {"prefix": "u", "limit": "2", "after": first["after"]}).json()
    assert ([(row["key"], row["changed_at"]) for row in second["rows"]], second["after"]) == ([("u/3", None)], "")
    assert api.get(url, {"prefix": "x"}).json() == {"rows": [], "after": ""}


@pytest.mark.parametrize("limit", ["0", "1001", "x", "-1", "", "9" * 30, "000001000999999", "²"])
def test_limit_outside_its_bounds_is_refused(api: APIClient, table: LookupTable, limit: str):
    answer = api.get(f"{TABLES}{table.id}/rows/", {"limit": limit})
    assert (answer.status_code, answer.json()["code"]) == (400, "parameter-invalid")


def test_status_and_feeds_are_shown(api: APIClient, table: LookupTable, feeding: Pipe, on_hosts: TableService):
    status = api.get(f"{TABLES}{table.id}/status/").json()
    assert (status["stream_fed"], status["rows"]) == (True, 3)
    assert status["changed_at"] == "2026-11-27T12:00:00.250000Z"
    assert status["lag_s"] >= 0
    feed = {"pipe": feeding.id, "pipe_name": "sign-ups", "destination": "people"}
    assert api.get(f"{TABLES}{table.id}/").json()["fed_by"] == [feed]
    assert api.get(TABLES).json()["results"][0]["fed_by"] == [feed]


def test_table_that_no_pipe_feeds_is_read_from_postgres(api: APIClient, table: LookupTable):
    url = f"{TABLES}{table.id}/"
    assert api.get(f"{url}rows/u-1/").json() == {"name": "of Postgres"}
    page = api.get(f"{url}rows/", {"prefix": "u"}).json()
    assert page == {
        "rows": [{"key": "u-1", "row": {"name": "of Postgres"}, "version": "2", "changed_at": None}],
        "after": "",
    }
    status = api.get(f"{url}status/").json()
    assert (status["stream_fed"], status["rows"], status["lag_s"]) == (False, 1, None)
    assert api.get(url).json()["fed_by"] == []


def test_unreachable_hosts_are_reported(api: APIClient, table: LookupTable, feeding: Pipe):
    for rest in ("rows/u-1/", "rows/", "status/"):
        answer = api.get(f"{TABLES}{table.id}/{rest}")
        assert (answer.status_code, answer.json()["code"]) == (503, "table-unreachable")
        assert "users" in answer.json()["detail"]
        assert answer["Retry-After"]


def test_row_without_a_key_is_not_found(tenant: Tenant, on_hosts: TableService, a_spec: MakeSpec):
    shown = dry_run_spec(enriched(a_spec()), sample_body({"who": ""}), tenant=tenant)
    assert [json.loads(request.body) for request in shown.requests] == [{"who": ""}]


def test_export_continues_after_many_removed_rows(table: LookupTable, on_hosts: TableService):
    removed: dict[str, tuple[int, str | None]] = {f"a{n:05}": (VERSION, None) for n in range(MOST_READ + 1)}
    on_hosts.fill(table.id, table.tenant_id, table.name, removed)
    assert [row["key"] for row in all_rows(table)] == ["u-1", "u-2", "u/3"]


def test_installation_without_an_address_of_table_queries_is_named(
    api: APIClient, table: LookupTable, feeding: Pipe, settings: Settings
):
    settings.PENSTOCK_TABLES_HOSTS = []
    answer = api.get(f"{TABLES}{table.id}/rows/u-1/")
    assert answer.status_code == 503
    assert "no address of table queries" in answer.json()["detail"]
    assert "Try again" not in answer.json()["detail"]


def test_next_host_is_asked_if_one_does_not_answer(
    api: APIClient, table: LookupTable, on_hosts: TableService, settings: Settings
):
    settings.PENSTOCK_TABLES_HOSTS = ["http://127.0.0.1:1", on_hosts.url, "http://127.0.0.1:2"]
    for number in range(1, 3):
        assert api.get(f"{TABLES}{table.id}/rows/u-{number}/").status_code == 200


def test_host_that_does_not_have_the_table_yet_is_reported_as_unreachable(
    api: APIClient, table: LookupTable, feeding: Pipe, hosts: TableService
):
    assert api.get(f"{TABLES}{table.id}/rows/u-1/").status_code == 503


def test_answer_of_another_server_is_reported_as_unreachable(
    api: APIClient, table: LookupTable, on_hosts: TableService, settings: Settings
):
    settings.PENSTOCK_TABLES_HOSTS = [f"{on_hosts.url}/livez?"]
    assert api.get(f"{TABLES}{table.id}/rows/u-1/").status_code == 503


def test_rows_that_a_pipe_wrote_are_read_from_the_hosts_after_its_end(
    api: APIClient, table: LookupTable, on_hosts: TableService, feeding: Pipe
):
    PipeRevision.objects.filter(pipe=feeding).update(state="retired")
    assert is_stream_fed(table)
    assert feeds_of([table]) == {}
    assert api.get(f"{TABLES}{table.id}/rows/u-1/").json()["name"] == "of the host"


def test_rows_entered_after_the_pipe_has_ended_replace_those_that_it_wrote(
    api: APIClient, table: LookupTable, feeding: Pipe, on_hosts: TableService
):
    PipeRevision.objects.filter(pipe=feeding).update(state="retired")
    rows = f"{TABLES}{table.id}/rows/"
    assert api.put(f"{rows}u-1/", {"name": "corrected"}, format="json").status_code in (200, 201)
    assert api.delete(f"{rows}u-2/").status_code == 204
    published = {row.key: (row.version, row.row) for row in LookupRow.objects.filter(table=table)}
    on_hosts.fill(table.id, table.tenant_id, table.name, published)
    assert api.get(f"{rows}u-1/").json() == {"name": "corrected"}
    assert api.get(f"{rows}u-2/").status_code == 404
    table.refresh_from_db()
    assert table.row_count == LookupRow.objects.filter(table=table, row__isnull=False).count()


def test_revision_of_an_earlier_table_of_the_name_does_not_count(table: LookupTable, feeding: Pipe):
    PipeRevision.objects.filter(pipe=feeding).update(state="retired")
    table.created_at = timezone.now() + timedelta(seconds=1)
    assert not is_stream_fed(table)


def test_granted_access_reads_its_table_directly(
    api: APIClient, table: LookupTable, on_hosts: TableService, settings: Settings
):
    settings.PENSTOCK_TABLES_URL = on_hosts.url
    answer = api.post(f"{TABLES}{table.id}/access/", {}, format="json")
    granted = answer.json()
    assert (answer.status_code, answer["Cache-Control"]) == (201, "no-store")
    assert granted["url"] == f"{on_hosts.url}/v1/tables/{table.id}"
    status, row = on_hosts.get(f"/v1/tables/{table.id}/rows/u-2", granted["token"])
    assert (status, row["row"]) == (200, {"name": "Bob"})
    claims = read_access(settings.PENSTOCK_FERNET_KEYS, granted["token"], 0)
    assert claims.until_s == datetime.fromisoformat(granted["expires_at"]).timestamp()
    assert 800 < claims.until_s - timezone.now().timestamp() <= 900
    assert on_hosts.get("/v1/tables/tab_0/rows/x", granted["token"])[0] == 403


def test_access_is_not_offered_without_a_public_address(api: APIClient, table: LookupTable, settings: Settings):
    settings.PENSTOCK_TABLES_URL = ""
    answer = api.post(f"{TABLES}{table.id}/access/")
    assert (answer.status_code, answer.json()["code"]) == (409, "access-not-offered")


def test_dry_run_reads_the_row_of_the_host(tenant: Tenant, on_hosts: TableService, a_spec: MakeSpec):
    shown = dry_run_spec(enriched(a_spec()), sample_body({"who": "u-1"}), tenant=tenant)
    assert [json.loads(request.body) for request in shown.requests] == [
        {"who": "u-1", "user": {"name": "of the host", "n": 1.5}}
    ]
    shown = dry_run_spec(enriched(a_spec()), sample_body({"who": "gone"}), tenant=tenant)
    assert [json.loads(request.body) for request in shown.requests] == [{"who": "gone"}]


def test_dry_run_without_hosts_is_refused_with_the_reason(tenant: Tenant, feeding: Pipe, a_spec: MakeSpec):
    with pytest.raises(TableUnreachable, match="look-up table users cannot be read now"):
        dry_run_spec(enriched(a_spec()), sample_body({"who": "u-1"}), tenant=tenant)
    assert issubclass(TableUnreachable, SandboxRefused), "so that every page and the API answer it"


def recomputed(tenant: Tenant, alice: User, a_spec: MakeSpec) -> Recomputation:
    pipe = create_pipe(tenant=tenant, name="orders", spec=enriched(a_spec()), author=alice)
    meta = MessageMeta(WIRE_VERSION, "msg_1", pipe.id, 1, "shop", 1, 1, 1)
    record = StoredRecord(meta, (), b'{"who":"u-1"}', 13)
    return Recomputation(pipe, record, 1, 0)


def test_journey_reads_the_row_of_the_host(tenant: Tenant, alice: User, on_hosts: TableService, a_spec: MakeSpec):
    found = recomputed(tenant, alice, a_spec)
    assert found.unavailable == ""
    enrich = next(stage for stage in found.stages if stage.node == "enrich")
    assert json.loads(enrich.result.body)["user"] == {"name": "of the host", "n": 1.5}


def test_journey_without_hosts_says_why_its_stages_are_missing(
    tenant: Tenant, alice: User, feeding: Pipe, a_spec: MakeSpec
):
    found = recomputed(tenant, alice, a_spec)
    assert found.stages == []
    assert "look-up table users cannot be read now" in found.unavailable


def test_query_count_does_not_grow_with_the_tables(
    api: APIClient, tenant: Tenant, feeding: Pipe, django_assert_max_num_queries: DjangoAssertNumQueries
):
    for number in range(8):
        create_lookup_table(tenant=tenant, name=f"more-{number}")
    with django_assert_max_num_queries(8):
        assert len(api.get(TABLES).json()["results"]) == 9
