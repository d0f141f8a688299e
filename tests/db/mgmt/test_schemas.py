"""Schemas of sources in the API: registered if compatible, refused naming the field, kept permanently."""

import gzip
import json
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from rest_framework.test import APIClient

from controlplane.provisioner.desired_state import wanted_versions
from controlplane.provisioner.records import desired_records
from dataplane.ledger.meta import MessageMeta
from dataplane.spec.schema import MAX_BYTES
from dataplane.tables.records import SchemaRecord
from mgmt.messages.queries.records import StoredRecord
from mgmt.models import Pipe, SourceSchema, Tenant, User
from mgmt.schemas import queries, services
from mgmt.services import SchemaConflictError, close_pipe, create_pipe, publish_revision, register_schema
from tests.db.cast import MakeClient, MakeSpec
from tests.db.console.truth import go_live
from tests.db.provisioning import snapshot

V1: dict[str, Any] = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "amount": {"type": "number"}},
    "required": ["id"],
    "additionalProperties": False,
}
V2 = V1 | {"properties": V1["properties"] | {"note": {"type": "string"}}}
V3 = V2 | {"properties": V2["properties"] | {"amount": {"type": "integer"}}, "required": ["id", "note"]}


@pytest.fixture
def editor(bob: User, pipe: Pipe, client_of: MakeClient) -> APIClient:
    return client_of(bob)


@pytest.fixture
def url(pipe: Pipe) -> str:
    return f"/api/v1/pipes/{pipe.id}/sources/shop/schemas/"


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mgmt.messages.queries.records.READ_S", 0.05)


def register(client: APIClient, url: str, document: Any) -> Any:
    return client.post(url, {"schema": document}, format="json")


def test_schema_is_registered_listed_and_returned_as_written(editor: APIClient, url: str):
    assert editor.get(url).json()["results"] == []
    made = register(editor, url, V1)
    assert (made.status_code, made.json()["number"], made.json()["author"]) == (201, 1, "bob")
    assert register(editor, url, V2).json()["number"] == 2
    assert [one["number"] for one in editor.get(url).json()["results"]] == [2, 1]
    read = editor.get(made["Location"])
    assert read.json()["schema"] == V1
    assert list(read.json()["schema"]) == list(V1)
    assert editor.get(f"{url}3/").status_code == 404


def test_equal_schema_is_registered_once(editor: APIClient, url: str):
    register(editor, url, V1)
    again = register(editor, url, V1)
    assert (again.status_code, again.json()["number"]) == (200, 1)
    assert SourceSchema.objects.count() == 1


def test_breaking_change_is_refused_naming_each_field(editor: APIClient, url: str):
    register(editor, url, V2)
    answer = register(editor, url, V3)
    assert (answer.status_code, answer.json()["code"]) == (409, "schema-breaking")
    assert answer["Content-Type"] == "application/problem+json"
    told = {error["pointer"]: error["detail"] for error in answer.json()["errors"]}
    assert told == {
        "#/schema/properties/amount/type": "amount: needs to be integer now, and could be number",
        "#/schema/required": "note: is required now, but was optional",
    }
    assert "a second source" in answer.json()["detail"]
    assert SourceSchema.objects.count() == 1


def newest(source: str, body: bytes) -> StoredRecord:
    return StoredRecord(MessageMeta(1, "msg-7", "p", 1, source, 1, 1, 1), (), body, len(body))


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (newest("shop", b'{"id": "a", "amount": 1.5}'), "msg-7, would be refused: /note: is required, but missing"),
        (newest("shop", b'{"id": "a", "amount": 1, "note": "x"}'), "msg-7, fits"),
        (newest("other", b"{}"), ""),
        (newest("shop", b"no json"), ""),
    ],
)
def test_response_reports_if_the_newest_event_would_be_refused(
    editor: APIClient, url: str, monkeypatch: pytest.MonkeyPatch, record: StoredRecord, words: str
):
    monkeypatch.setattr(queries, "last_event", lambda _pipe: record)
    first = register(editor, url, V2)
    assert ("newest event" in str(first.json()["newest_event"])) == bool(words)
    detail = register(editor, url, V2 | {"required": ["id", "note"]}).json()["detail"]
    assert words in detail
    assert ("newest event" in detail) == bool(words)


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({"type": "strin"}, "#/schema/type"),
        ({"properties": {"a": {"$ref": "https://example.com/a.json"}}}, "#/schema/properties/a/$ref"),
        ({"$defs": {"a": {"$ref": "#/$defs/a"}}}, "#/schema/$defs/a/$ref"),
        ({"properties": {"a/b": {"pattern": "(?=a)"}}}, "#/schema/properties/a~1b/pattern"),
        ({"requierd": []}, "#/schema/requierd"),
        ({"const": "\ud800"}, "#/schema"),
    ],
)
def test_invalid_schema_is_refused_with_its_path(editor: APIClient, url: str, document: Any, pointer: str):
    body = json.dumps({"schema": document})
    answer = editor.post(url, body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (422, "schema-invalid")
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert not SourceSchema.objects.exists()


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        pytest.param(b'{"schema": {"$comment": "%s"}}' % (b"x" * MAX_BYTES), {}, 422, "schema-invalid", id="64 kB"),
        pytest.param(b'{"schema": {"$comment": "%s"}}' % (b"x" * 10_000_000), {}, 413, "body-too-large", id="10 MB"),
        pytest.param(b"[" * 50_000, {}, 400, "json-invalid", id="deep"),
        pytest.param(b'{"schema": ' * 200 + b"1" + b"}" * 200, {}, 422, "schema-invalid", id="too deep for a schema"),
        pytest.param(b"{", {}, 400, "json-invalid", id="no json"),
        pytest.param(b'{"schema": [1]}', {}, 400, "invalid", id="no object"),
        pytest.param(b'{"schema": {}, "number": 7}', {}, 400, "invalid", id="a field that is not there"),
        pytest.param(gzip.compress(b"{}"), {"Content-Encoding": "gzip"}, 415, "media-type", id="packed"),
        pytest.param(
            b"PK\x03\x04", {"Content-Type": "application/zip"}, 415, "media-type", id="an archive, such as a zip bomb"
        ),
        pytest.param(
            b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
            {"Content-Type": "application/xml"},
            415,
            "media-type",
            id="xml with entities",
        ),
    ],
)
def test_body_without_a_schema_is_refused(
    editor: APIClient, url: str, body: bytes, headers: dict[str, str], status: int, code: str
):
    media_type = headers.pop("Content-Type", "application/json")
    answer = editor.post(url, body, content_type=media_type, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert not SourceSchema.objects.exists()


def test_schema_of_another_tenant_is_not_found(
    editor: APIClient, url: str, charlie: User, client_of: MakeClient, a_spec: MakeSpec
):
    register(editor, url, V1)
    stranger = client_of(charlie)
    own = create_pipe(tenant=charlie.tenants.get(), name="mine", spec=a_spec(), author=charlie)
    assert stranger.get(f"{url}1/").status_code == 404
    assert stranger.get(f"/api/v1/pipes/{own.id}/sources/shop/schemas/1/").status_code == 404
    assert register(stranger, url, V2).status_code == 404
    assert register(editor, url.replace("/shop/", "/none/"), V1).status_code == 404


def test_closed_pipe_accepts_no_schema(editor: APIClient, url: str, pipe: Pipe):
    close_pipe(pipe=pipe)
    assert register(editor, url, V1).json()["code"] == "pipe-closed"


def test_number_of_versions_is_limited(editor: APIClient, url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(services, "MAX_VERSIONS", 1)
    register(editor, url, V1)
    assert register(editor, url, V2).json()["code"] == "limit-reached"


def test_kafka_source_accepts_no_schema(
    editor: APIClient, url: str, pipe: Pipe, bob: User, settings: Any, a_spec: MakeSpec
):
    spec = a_spec() | {"sources": {"shop": {"type": "kafka", "cluster": "main", "topic": "orders"}}}
    pipe.revisions.model.objects.create(pipe=pipe, number=2, spec=spec, author=bob)
    answer = register(editor, url, V1)
    assert (answer.status_code, answer.json()["code"]) == (422, "schema-invalid")


def test_later_of_two_concurrent_registrations_is_refused(pipe: Pipe, bob: User, monkeypatch: pytest.MonkeyPatch):
    source = pipe.sources.get()
    checked = services.checked_next

    def and_then_somebody_else(**what: Any) -> Any:
        found = checked(**what)
        SourceSchema.objects.create(source=source, number=1, text="{}")
        return found

    monkeypatch.setattr(services, "checked_next", and_then_somebody_else)
    with pytest.raises(SchemaConflictError, match="version 1"):
        register_schema(source=source, document=V1, author=bob)


def test_database_keeps_registered_schemas_immutable(pipe: Pipe, bob: User):
    made, _ = register_schema(source=pipe.sources.get(), document=V1, author=bob)
    for change in (lambda: SourceSchema.objects.update(text="{}"), made.delete):
        with pytest.raises(IntegrityError, match="schema_is_immutable"), transaction.atomic():
            change()


def test_newest_version_is_published_to_the_control_topic_before_the_pipe(pipe: Pipe, bob: User, tenant: Tenant):
    source = pipe.sources.get()
    register_schema(source=source, document=V1, author=bob)
    newest, _ = register_schema(source=source, document=V2, author=bob)
    go_live(pipe)
    wanted = wanted_versions(snapshot())
    key = f"schema/{pipe.id}/shop"
    assert wanted[key] == 2
    assert list(wanted).index(key) < list(wanted).index(f"pipe/{pipe.id}")
    assert desired_records([key]).records == [SchemaRecord(pipe.id, "shop", 2, newest.text)]


def test_new_revision_leaves_schemas_unchanged(pipe: Pipe, bob: User, a_spec: MakeSpec):
    register_schema(source=pipe.sources.get(), document=V1, author=bob)
    publish_revision(pipe=pipe, spec=a_spec(), based_on=1, author=bob)
    assert SourceSchema.objects.get().number == 1
