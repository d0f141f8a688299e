"""Sources of type table: whose tables they may read, loops that are refused, and the removal of a table."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from dataplane.spec import SpecError
from mgmt.models import LookupTable, Pipe, PipeRevision, Tenant, User
from mgmt.services import create_lookup_table, create_pipe, create_tenant, publish_revision
from tests.db.cast import MakeClient, MakeSpec

PIPES = "/api/v1/pipes/"


@pytest.fixture
def other_tenant(charlie: User) -> Tenant:
    return create_tenant(name="Charlie's", owner=charlie)


@pytest.fixture
def users(tenant: Tenant) -> LookupTable:
    create_lookup_table(tenant=tenant, name="totals")
    create_lookup_table(tenant=tenant, name="regions")
    return create_lookup_table(tenant=tenant, name="users")


@pytest.fixture
def editor(bob: User, users: LookupTable, client_of: MakeClient) -> APIClient:
    return client_of(bob)


def copying(spec: dict[str, Any], reads: str, writes: str = "", **source: Any) -> dict[str, Any]:
    """Return the spec with a source of a table's changes and, if `writes` names one, a table that it feeds."""
    fed = {"fed": {"type": "table", "table": writes, "key": "body.key"}} if writes else {}
    sources = {"changes": {"type": "table", "table": reads, **source}}
    return spec | {"sources": sources, "destinations": spec["destinations"] | fed}


def refusal(answer: Any) -> tuple[int, str, str]:
    (error,) = answer.json()["errors"]
    return answer.status_code, error["pointer"], error["detail"]


def test_source_is_stored_with_its_defaults(editor: APIClient, a_spec: MakeSpec):
    answer = editor.post(PIPES, {"name": "push", "spec": copying(a_spec(), "users", **{"from": "snapshot"})})
    assert answer.status_code == 201
    stored = PipeRevision.objects.get().spec["sources"]["changes"]
    assert stored == {"type": "table", "table": "users", "from": "snapshot", "prefix": ""}


@pytest.mark.parametrize(
    ("source", "field"),
    [({"from": "earliest"}, "from"), ({"key": "id"}, "changes"), ({"prefix": "a" * 401}, "prefix")],
)
def test_invalid_source_is_refused_with_its_field(
    editor: APIClient, a_spec: MakeSpec, source: dict[str, Any], field: str
):
    status, pointer, _ = refusal(editor.post(PIPES, {"name": "push", "spec": copying(a_spec(), "users", **source)}))
    assert (status, pointer.rpartition("/")[2]) == (422, field)


def test_pipe_reads_only_changes_of_tables_of_its_own_tenant(
    editor: APIClient, a_spec: MakeSpec, charlie: User, other_tenant: Tenant
):
    create_lookup_table(tenant=other_tenant, name="theirs")
    for name in ("theirs", "none"):
        answer = editor.post(PIPES, {"name": "push", "spec": copying(a_spec(), name)})
        assert refusal(answer)[:2] == (422, "#/spec/sources/changes/table")
    assert not Pipe.objects.exists()


def test_table_whose_changes_a_pipe_reads_is_not_removed(editor: APIClient, users: LookupTable, a_spec: MakeSpec):
    assert editor.post(PIPES, {"name": "push", "spec": copying(a_spec(), "users")}).status_code == 201
    url = f"/api/v1/lookup-tables/{users.id}/"
    refused = editor.delete(url)
    assert (refused.status_code, refused.json()["code"]) == (409, "table-in-use")
    assert "push@1" in refused.json()["detail"]
    assert "Publish a revision without it first" in refused.json()["detail"]
    PipeRevision.objects.update(state="retired")
    assert editor.delete(url).status_code == 204


def test_rows_of_a_table_may_be_entered_while_its_changes_are_read(
    editor: APIClient, users: LookupTable, a_spec: MakeSpec
):
    assert editor.post(PIPES, {"name": "push", "spec": copying(a_spec(), "users")}).status_code == 201
    assert editor.put(f"/api/v1/lookup-tables/{users.id}/rows/u-1/", {"n": 1}).status_code == 201


def test_pipe_that_writes_the_table_it_reads_is_refused(editor: APIClient, a_spec: MakeSpec):
    status, pointer, detail = refusal(editor.post(PIPES, {"name": "push", "spec": copying(a_spec(), "users", "users")}))
    assert (status, pointer) == (422, "#/spec/sources/changes/table")
    assert "users -> this pipe -> users" in detail


def test_loop_through_other_pipes_is_refused_with_its_chain(
    editor: APIClient, tenant: Tenant, alice: User, a_spec: MakeSpec
):
    create_pipe(tenant=tenant, name="sum", spec=copying(a_spec(), "users", "totals"), author=alice)
    create_pipe(tenant=tenant, name="group", spec=copying(a_spec(), "totals", "regions"), author=alice)
    _, _, detail = refusal(editor.post(PIPES, {"name": "back", "spec": copying(a_spec(), "regions", "users")}))
    assert "regions -> this pipe -> users -> sum -> totals -> group -> regions" in detail
    PipeRevision.objects.filter(pipe__name="group").update(state="retired")
    assert editor.post(PIPES, {"name": "back", "spec": copying(a_spec(), "regions", "users")}).status_code == 201


@pytest.mark.usefixtures("users")
@pytest.mark.parametrize(
    ("first", "second"), [(("users", "totals"), ("totals", "regions")), (("totals", "regions"), ("users", "totals"))]
)
def test_revisions_of_one_pipe_that_close_a_loop_during_the_ramp_are_refused(
    tenant: Tenant,
    alice: User,
    a_spec: MakeSpec,
    first: tuple[str, str],
    second: tuple[str, str],
):
    pipe = create_pipe(tenant=tenant, name="sum", spec=copying(a_spec(), *first), author=alice)
    with pytest.raises(SpecError, match="totals -> this pipe -> totals") as refused:
        publish_revision(pipe=pipe, spec=copying(a_spec(), *second), based_on=1, author=alice)
    assert refused.value.path == "$.sources.changes.table"
    publish_revision(pipe=pipe, spec=copying(a_spec(), "users", "regions"), based_on=1, author=alice)


@pytest.mark.django_db(transaction=True)
def test_two_concurrent_revisions_cannot_close_a_loop_together(
    tenant: Tenant, alice: User, users: LookupTable, a_spec: MakeSpec
):
    ready = Barrier(2)
    both = [create_pipe(tenant=tenant, name=name, spec=a_spec(), author=alice) for name in ("first", "second")]

    def make(pipe: Pipe, tables: tuple[str, str]) -> str:
        ready.wait(10)
        try:
            publish_revision(pipe=pipe, spec=copying(a_spec(), *tables), based_on=1, author=alice)
        except SpecError:
            return "refused"
        finally:
            connection.close()
        return "made"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(make, both, [("users", "totals"), ("totals", users.name)])) == ["made", "refused"]


@pytest.mark.parametrize("reads", ["", "users"])
def test_revision_locks_the_tenant_before_its_tables(
    tenant: Tenant, alice: User, users: LookupTable, a_spec: MakeSpec, reads: str
):
    pipe = create_pipe(tenant=tenant, name="sum", spec=a_spec(), author=alice)
    enrich = {"enrich": [{"table": users.name, "key": "body.id", "into": "user"}]}
    spec = copying(a_spec(), reads) if reads else a_spec() | enrich
    with CaptureQueriesContext(connection) as captured:
        publish_revision(pipe=pipe, spec=spec, based_on=1, author=alice)
    locked = [query["sql"] for query in captured if "FOR NO KEY UPDATE" in query["sql"]]
    assert ["mgmt_tenant" in locked[0], any("mgmt_lookuptable" in sql for sql in locked)] == [True, True]


def test_loop_of_another_tenant_is_none(editor: APIClient, other_tenant: Tenant, charlie: User, a_spec: MakeSpec):
    for name in ("users", "totals"):
        create_lookup_table(tenant=other_tenant, name=name)
    create_pipe(tenant=other_tenant, name="theirs", spec=copying(a_spec(), "totals", "users"), author=charlie)
    assert editor.post(PIPES, {"name": "mine", "spec": copying(a_spec(), "users", "totals")}).status_code == 201
