"""Look-up tables in the API: single rows, files stored completely or not at all, and roles."""

from collections.abc import Iterable
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from controlplane.provisioner.records import desired_records
from dataplane.tables.records import DestinationRecord, destination_key
from mgmt.api_urls import urlpatterns
from mgmt.lookups import services as lookups
from mgmt.models import LookupRow, LookupTable, Membership, Pipe, PipeRevision, Tenant, User
from mgmt.services import add_member, create_lookup_table, create_pipe
from mgmt.web import access
from tests.db.cast import MakeClient, MakeSpec

Role = Membership.Role
TABLES = "/api/v1/lookup-tables/"


@pytest.fixture
def table(tenant: Tenant) -> LookupTable:
    return create_lookup_table(tenant=tenant, name="shops")


@pytest.fixture
def editor(bob: User, tenant: Tenant, client_of: MakeClient) -> APIClient:
    return client_of(bob)


def upload(client: APIClient, table: LookupTable, body: str | bytes, *, query: str = "", form: str = "ndjson") -> Any:
    media = "text/csv" if form == "csv" else "application/x-ndjson"
    return client.post(f"{TABLES}{table.id}/upload/{query}", body, content_type=media)


def stored(table: LookupTable) -> dict[str, str | None]:
    return dict(LookupRow.objects.filter(table=table).values_list("key", "row"))


def versions(table: LookupTable) -> list[int]:
    return sorted(LookupRow.objects.filter(table=table).values_list("version", flat=True))


def test_table_is_created_shown_and_listed(editor: APIClient, tenant: Tenant):
    made = editor.post(TABLES, {"name": "shops"})
    assert (made.status_code, made.json()["row_count"], made.json()["state"]) == (201, 0, "publishing")
    assert editor.get(made["Location"]).json() == made.json()
    assert editor.get(TABLES).json()["results"] == [made.json()]
    again = editor.post(TABLES, {"name": "shops"})
    assert (again.status_code, again.json()["code"]) == (409, "name-taken")


@pytest.mark.parametrize("name", ["", "Shops", "a b", "-a", "a" * 41, "shops\nx"])
def test_table_name_must_be_valid_in_a_spec(editor: APIClient, tenant: Tenant, name: str):
    assert editor.post(TABLES, {"name": name}).status_code == 400


def test_number_of_tables_is_limited(editor: APIClient, table: LookupTable, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lookups, "MAX_TABLES", 1)
    assert editor.post(TABLES, {"name": "more"}).json()["code"] == "limit-reached"


def test_row_is_created_read_changed_and_removed(editor: APIClient, table: LookupTable):
    url = f"{TABLES}{table.id}/rows/berlin%2Fmitte/"
    assert editor.get(url).status_code == 404
    assert editor.put(url, {"vat": 19}).status_code == 201
    assert editor.put(url, {"vat": 20}).status_code == 200
    assert editor.get(url).json() == {"vat": 20}
    assert LookupTable.objects.get().row_count == 1
    assert editor.delete(url).status_code == 204
    assert editor.get(url).status_code == 404
    assert editor.delete(url).status_code == 404
    assert stored(table) == {"berlin/mitte": None}  # the removal must be published
    assert LookupTable.objects.get().row_count == 0
    assert editor.put(url, {"vat": 21}).status_code == 201
    assert versions(table) == [LookupTable.objects.get().version]


@pytest.mark.parametrize("body", [[1], "text", {"t": "x" * 17_000}])
def test_row_must_be_an_object_of_limited_size(editor: APIClient, table: LookupTable, body: Any):
    assert editor.put(f"{TABLES}{table.id}/rows/a/", body).status_code in (400, 422)
    assert stored(table) == {}


def test_file_is_stored_completely(editor: APIClient, table: LookupTable):
    answer = upload(editor, table, "sku,vat\na,7\nb,19\n", query="?key=sku", form="csv")
    assert (answer.status_code, answer.json()["rows"], answer.json()["table"]["row_count"]) == (200, 2, 2)
    assert stored(table) == {"a": '{"sku":"a","vat":"7"}', "b": '{"sku":"b","vat":"19"}'}
    assert versions(table) == [2, 3]


def test_second_file_merges_or_replaces(editor: APIClient, table: LookupTable):
    upload(editor, table, '{"key":"a"}\n{"key":"b"}\n{"key":"c"}')
    upload(editor, table, '{"key":"b","n":2}')
    assert stored(table) == {"a": '{"key":"a"}', "b": '{"key":"b","n":2}', "c": '{"key":"c"}'}
    answer = upload(editor, table, '\n\n{"key":"b","n":3}\n{"key":"d"}', query="?mode=replace")
    assert answer.json()["table"]["row_count"] == 2
    assert stored(table) == {"a": None, "b": '{"key":"b","n":3}', "c": None, "d": '{"key":"d"}'}
    found = versions(table)
    assert len(set(found)) == 4
    assert found[-1] <= LookupTable.objects.get().version


@pytest.mark.parametrize("mode", ["merge", "replace"])
def test_invalid_last_row_leaves_everything_unchanged(editor: APIClient, table: LookupTable, mode: str):
    upload(editor, table, '{"key":"old"}')
    before = LookupTable.objects.get().version
    body = "".join(f'{{"key":"{n}"}}\n' for n in range(5_000)) + '{"key":'
    answer = upload(editor, table, body, query=f"?mode={mode}")
    assert (answer.status_code, answer.json()["code"]) == (422, "row-invalid")
    assert answer.json()["errors"] == [
        {"row": "5001", "detail": "needs a JSON object on one line", "code": "row-invalid"}
    ]
    assert (stored(table), LookupTable.objects.get().version) == ({"old": '{"key":"old"}'}, before)


def test_duplicate_key_is_refused(editor: APIClient, table: LookupTable):
    answer = upload(editor, table, '{"key":"a"}\n{"key":"b"}\n{"key":"b"}\n{"key":"a"}')
    (error,) = answer.json()["errors"]
    assert (error["row"], error["detail"]) == ("3", "has the same key as row 2")
    assert stored(table) == {}


def test_empty_file_is_refused(editor: APIClient, table: LookupTable):
    assert upload(editor, table, "").json()["errors"][0]["detail"] == "needs rows, got an empty body"


def test_number_of_rows_is_limited_for_files_and_single_rows(
    editor: APIClient, table: LookupTable, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(lookups, "MAX_ROWS", 2)
    assert upload(editor, table, '{"key":"a"}\n{"key":"b"}').status_code == 200
    for answer in (
        upload(editor, table, '{"key":"c"}'),
        upload(editor, table, '{"key":"c"}\n{"key":"d"}\n{"key":"e"}'),
        editor.put(f"{TABLES}{table.id}/rows/c/", {"n": 1}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (409, "limit-reached")
    assert set(stored(table)) == {"a", "b"}
    assert editor.put(f"{TABLES}{table.id}/rows/a/", {"n": 1}).status_code == 200


@pytest.mark.parametrize(
    ("media", "query", "code"),
    [("application/json", "", "media-type"), ("text/csv", "?mode=append", "parameter-invalid")],
)
def test_upload_with_unknown_media_type_or_mode_is_refused(
    editor: APIClient, table: LookupTable, media: str, query: str, code: str
):
    answer = editor.post(f"{TABLES}{table.id}/upload/{query}", "key\n", content_type=media)
    assert answer.json()["code"] == code


def with_table(spec: dict[str, Any], name: str = "shops") -> dict[str, Any]:
    return spec | {"enrich": [{"table": name, "key": "body.shop", "into": "row"}]}


def test_spec_names_only_tables_of_its_own_tenant(
    editor: APIClient, table: LookupTable, charlie: User, client_of: MakeClient, a_spec: MakeSpec
):
    assert editor.post("/api/v1/pipes/", {"name": "x", "spec": with_table(a_spec())}).status_code == 201
    for client, name in ((editor, "shop"), (client_of(charlie), "shops")):
        answer = client.post("/api/v1/pipes/", {"name": "y", "spec": with_table(a_spec(), name)})
        (error,) = answer.json()["errors"]
        assert (answer.status_code, error["pointer"]) == (422, "#/spec/enrich/0/table")
    assert Pipe.objects.count() == 1


def test_table_in_use_is_not_removed_and_a_removed_tables_name_is_free(
    editor: APIClient, table: LookupTable, tenant: Tenant, alice: User, a_spec: MakeSpec
):
    pipe = create_pipe(tenant=tenant, name="orders", spec=with_table(a_spec()), author=alice)
    url = f"{TABLES}{table.id}/"
    refused = editor.delete(url)
    assert (refused.status_code, refused.json()["code"]) == (409, "table-in-use")
    assert "orders@1" in refused.json()["detail"]
    PipeRevision.objects.filter(pipe=pipe).update(state="retired")
    assert editor.delete(url).status_code == 204
    for answer in (
        editor.get(url),
        editor.put(f"{url}rows/a/", {}),
        upload(editor, table, '{"key":"a"}'),
    ):
        assert answer.status_code == 404
    assert editor.post(TABLES, {"name": "shops"}).status_code == 201


def fed_by_a_pipe(spec: dict[str, Any], name: str = "shops") -> dict[str, Any]:
    return spec | {"destinations": {"shops": {"type": "table", "table": name, "key": "body.id"}}}


def test_table_that_a_pipe_feeds_refuses_manual_rows_and_removal(
    editor: APIClient, table: LookupTable, tenant: Tenant, alice: User, a_spec: MakeSpec
):
    pipe = create_pipe(tenant=tenant, name="orders", spec=fed_by_a_pipe(a_spec()), author=alice)
    url = f"{TABLES}{table.id}/"
    for answer in (editor.delete(url), editor.put(f"{url}rows/a/", {}), upload(editor, table, '{"key":"a"}')):
        assert (answer.status_code, answer.json()["code"]) == (409, "table-in-use")
    (record,) = desired_records([destination_key(pipe.id, "shops")]).records
    assert isinstance(record, DestinationRecord)
    assert record.table == table.id
    PipeRevision.objects.filter(pipe=pipe).update(state="retired")
    assert editor.put(f"{url}rows/a/", {}).status_code == 201


def test_pipe_feeds_only_tables_of_its_own_tenant(editor: APIClient, table: LookupTable, a_spec: MakeSpec):
    answer = editor.post("/api/v1/pipes/", {"name": "x", "spec": fed_by_a_pipe(a_spec(), "other")})
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["pointer"]) == (422, "#/spec/destinations/shops/table")


# Every route of a look-up table but the list; the first test below checks that.
ROUTES = (
    ("get", ""),
    ("delete", ""),
    ("post", "upload/"),
    ("get", "status/"),
    ("post", "access/"),
    ("get", "rows/"),
    ("get", "rows/a/"),
    ("put", "rows/a/"),
    ("delete", "rows/a/"),
)


def of(table_id: str) -> Iterable[tuple[str, str]]:
    return ((method, f"{TABLES}{table_id}/{rest}") for method, rest in ROUTES)


def test_routes_of_a_table_are_all_listed():
    found = {
        (method, str(route.pattern).removeprefix("lookup-tables/<row_id:table>/").replace("<path:key>", "a"))
        for route in urlpatterns
        if "table" in route.pattern.converters
        for method in ("get", "post", "put", "patch", "delete")
        if hasattr(route.callback.view_class, method)
    }
    assert found == set(ROUTES)


def test_table_of_another_tenant_is_404_like_a_missing_one(table: LookupTable, charlie: User, client_of: MakeClient):
    client = client_of(charlie)
    for (method, foreign), (_, missing) in zip(of(table.id), of("tab_" + "0" * 20), strict=True):
        assert getattr(client, method)(foreign).status_code == 404
        assert getattr(client, method)(missing).status_code == 404
    assert client.get(TABLES).json()["results"] == []


def test_unauthenticated_request_is_401(table: LookupTable, client: Client):
    for method, url in of(table.id):
        assert getattr(client, method)(url).status_code == 401


@pytest.mark.parametrize("role", Role)
def test_editors_change_tables_and_all_members_read_them(
    table: LookupTable, tenant: Tenant, role: Role, client_of: MakeClient
):
    member = User.objects.create_user("dora")
    add_member(tenant=tenant, user=member, role=role)
    client = client_of(member)
    for rest in ("", "status/", "rows/"):
        assert client.get(f"{TABLES}{table.id}/{rest}").status_code == 200
    assert client.post(f"{TABLES}{table.id}/access/").status_code == 201
    may = access.may(role, access.CHANGE_LOOKUPS)
    answers = (
        client.post(TABLES, {"name": "more"}),
        client.put(f"{TABLES}{table.id}/rows/a/", {}),
        upload(client, table, '{"key":"a"}'),
        client.delete(f"{TABLES}{table.id}/rows/a/"),
        client.delete(f"{TABLES}{table.id}/"),
    )
    assert [answer.status_code for answer in answers] == ([201, 201, 200, 204, 204] if may else [403] * 5)


def test_dry_run_uses_the_stored_rows(editor: APIClient, table: LookupTable, tenant: Tenant, a_spec: MakeSpec):
    from mgmt.pipes.queries.dry_run import dry_run_spec, sample_body

    upload(editor, table, '{"key":"berlin","vat":19}')
    shown = dry_run_spec(with_table(a_spec()), sample_body({"shop": "berlin"}), tenant=tenant)
    assert [request.body for request in shown.requests] == ['{"shop":"berlin","row":{"key":"berlin","vat":19}}']
