"""Event types of sources: bound to subjects in the API, limited, and published to the control topic."""

import json
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.utils import timezone
from rest_framework.test import APIClient

from controlplane.provisioner import records
from controlplane.provisioner.desired_state import wanted_versions
from controlplane.provisioner.records import desired_records
from dataplane.schemas.types import Compatibility, SchemaType
from dataplane.tables.records import EventTypesRecord, SubjectRecord
from mgmt.errors import LimitReachedError
from mgmt.event_types import queries, services
from mgmt.event_types.queries import event_shapes_of, producers_of
from mgmt.models import EventType, Pipe, SchemaText, Source, SourceEventTypes, Subject, Tenant, User
from mgmt.registry.drafts import SchemaDraft, SchemaReference
from mgmt.services import close_pipe, deprecate_subject, register_version, set_event_types, set_subject_compatibility
from tests.db.cast import MakeClient, MakeSpec
from tests.db.console.truth import go_live
from tests.db.mgmt.registry_schemas import V1, V2, record
from tests.db.provisioning import snapshot

pytestmark = pytest.mark.django_db


@pytest.fixture
def editor(bob: User, pipe: Pipe, client_of: MakeClient) -> APIClient:
    return client_of(bob)


@pytest.fixture
def url(pipe: Pipe) -> str:
    return f"/api/v1/pipes/{pipe.id}/sources/shop/event-types/"


def register(tenant: Tenant, author: User, schema: Any = V1, subject: str = "orders", **more: Any) -> Subject:
    draft = SchemaDraft(SchemaType.AVRO, json.dumps(schema), **more)
    return register_version(tenant=tenant, subject=subject, draft=draft, author=author)[0].subject


def put(client: APIClient, url: str, subjects: Any, type_from: str = "field:type", **more: Any) -> Any:
    return client.put(url, {"type_from": type_from, "subjects": subjects} | more, format="json")


def wanted() -> dict[str, int]:
    return wanted_versions(snapshot())


def test_source_gets_event_types_and_loses_them_again(editor: APIClient, url: str, tenant: Tenant, bob: User):
    orders = register(tenant, bob)
    assert editor.get(url).json() == {"version": 0, "type_from": "", "types": []}
    made = put(editor, url, {"order": "orders"}, based_on=0)
    assert made.status_code == 200
    assert made.json() == editor.get(url).json()
    assert (made.json()["version"], made.json()["type_from"]) == (1, "field:type")
    assert made.json()["types"] == [
        {
            "name": "order",
            "subject": "orders",
            "subject_id": orders.id,
            "schema_type": "AVRO",
            "newest_version": 1,
            "deprecated_at": None,
        }
    ]
    assert put(editor, url, {}).json() == {"version": 2, "type_from": "", "types": []}


def test_repeated_request_changes_nothing(editor: APIClient, url: str, tenant: Tenant, bob: User):
    register(tenant, bob)
    assert put(editor, url, {"order": "orders"}, based_on=0).json()["version"] == 1
    assert put(editor, url, {"order": "orders"}, based_on=0).json()["version"] == 1


def test_change_based_on_an_older_version_is_refused(editor: APIClient, url: str, tenant: Tenant, bob: User):
    register(tenant, bob)
    put(editor, url, {"order": "orders"})
    answer = put(editor, url, {"sale": "orders"}, based_on=0)
    assert (answer.status_code, answer.json()["code"]) == (409, "event-types-conflict")
    assert EventType.objects.get().name == "order"


@pytest.mark.parametrize(
    ("type_from", "subjects", "field"),
    [
        ("field:", {"a": "orders"}, "type_from"),
        ("field:a..b", {"a": "orders"}, "type_from"),
        ("header:a b", {"a": "orders"}, "type_from"),
        ("header:Authorization", {"a": "orders"}, "type_from"),
        ("body:type", {"a": "orders"}, "type_from"),
        ("", {"a": "orders"}, "subjects"),
        ("field:type", {"": "orders"}, "subjects"),
        ("field:type", {"a\n": "orders"}, "subjects"),
        ("field:type", {"a": "missing"}, "subjects"),
        ("field:type", {"a": "level-only"}, "subjects"),
        ("field:type", {"a": "old"}, "subjects"),
        ("field:type", {str(n): "orders" for n in range(21)}, "subjects"),
    ],
)
def test_invalid_event_types_are_refused_at_their_field(
    editor: APIClient, url: str, tenant: Tenant, bob: User, type_from: str, subjects: Any, field: str
):
    register(tenant, bob)
    set_subject_compatibility(tenant=tenant, subject="level-only", level=None)
    deprecate_subject(subject=register(tenant, bob, subject="old"), now=timezone.now())
    answer = put(editor, url, subjects, type_from)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"].startswith(f"#/{field}")
    assert not SourceEventTypes.objects.exists()


def test_subject_that_is_deprecated_later_stays_bound(editor: APIClient, url: str, tenant: Tenant, bob: User):
    orders = register(tenant, bob)
    put(editor, url, {"order": "orders"})
    deprecate_subject(subject=orders, now=timezone.now())
    changed = put(editor, url, {"sale": "orders"}, "header:X-Type")
    assert (changed.status_code, changed.json()["type_from"]) == (200, "header:x-type")


def test_subject_of_another_tenant_cannot_be_bound(editor: APIClient, url: str, charlie: User):
    register(charlie.tenants.get(), charlie)
    assert put(editor, url, {"order": "orders"}).status_code == 400


def test_number_of_bound_subjects_is_limited(
    editor: APIClient, url: str, tenant: Tenant, bob: User, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(services, "MAX_BOUND", 1)
    register(tenant, bob)
    register(tenant, bob, subject="sales")
    assert put(editor, url, {"a": "orders", "b": "orders"}).status_code == 200
    assert put(editor, url, {"a": "orders", "b": "sales"}).json()["code"] == "limit-reached"
    other = Source.objects.create(pipe=Pipe.objects.get(), name="other")
    with pytest.raises(LimitReachedError):
        set_event_types(source=other, type_from="", subjects={"": "sales"}, by=bob)


def test_closed_pipe_keeps_its_event_types(editor: APIClient, url: str, pipe: Pipe, tenant: Tenant, bob: User):
    register(tenant, bob)
    close_pipe(pipe=pipe)
    assert put(editor, url, {"order": "orders"}).json()["code"] == "pipe-closed"


def test_subject_and_event_types_are_published_before_the_pipe(pipe: Pipe, tenant: Tenant, bob: User):
    register(tenant, bob)
    register(tenant, bob, subject="unused")
    set_event_types(source=pipe.sources.get(), type_from="field:type", subjects={"order": "orders"}, by=bob)
    go_live(pipe)
    subject, types = f"subject/{tenant.id}/orders", f"event-types/{pipe.id}/shop"
    versions = wanted()
    assert (versions[subject], versions[types], f"subject/{tenant.id}/unused" in versions) == (1, 1, False)
    order = list(versions)
    assert order.index(subject) < order.index(types) < order.index(f"pipe/{pipe.id}")
    first, second = desired_records([subject, types]).records
    assert second == EventTypesRecord(pipe.id, "shop", 1, "field:type", {"order": "orders"})
    assert isinstance(first, SubjectRecord)
    assert [(one.number, one.type) for one in first.schemas] == [(1, "AVRO")]
    assert json.loads(first.schemas[0].document)["fields"] == V1["fields"]


def test_new_version_of_a_bound_subject_is_published(pipe: Pipe, tenant: Tenant, bob: User):
    register(tenant, bob)
    set_event_types(source=pipe.sources.get(), type_from="", subjects={"": "orders"}, by=bob)
    register(tenant, bob, V2)
    key = f"subject/{tenant.id}/orders"
    assert wanted()[key] == 2
    built = desired_records([key]).records[0]
    assert isinstance(built, SubjectRecord)
    assert (built.version, [one.number for one in built.schemas]) == (2, [1, 2])


def test_removed_event_types_are_a_record_without_subjects(pipe: Pipe, tenant: Tenant, bob: User):
    register(tenant, bob)
    go_live(pipe)
    source = pipe.sources.get()
    set_event_types(source=source, type_from="field:type", subjects={"order": "orders"}, by=bob)
    set_event_types(source=source, type_from="", subjects={}, by=bob)
    key = f"event-types/{pipe.id}/shop"
    assert wanted()[key] == 2
    assert desired_records([key]).records == [EventTypesRecord(pipe.id, "shop", 2, "", {})]


def test_record_of_a_large_subject_has_its_newest_versions(tenant: Tenant, bob: User, monkeypatch: pytest.MonkeyPatch):
    register(tenant, bob)
    register(tenant, bob, V2)
    monkeypatch.setattr(records, "MAX_SUBJECT_BYTES", 10)
    built = desired_records([f"subject/{tenant.id}/orders"]).records[0]
    assert isinstance(built, SubjectRecord)
    assert [one.number for one in built.schemas] == [2]


def test_document_has_the_types_that_the_schema_refers_to(tenant: Tenant, bob: User):
    register(tenant, bob, record("com.shop.Customer", name="string"), "customers")
    used = (SchemaReference("com.shop.Customer", "customers", 1),)
    register(tenant, bob, record(customer="com.shop.Customer"), references=used)
    stored = dict(SchemaText.objects.values_list("name", "document"))
    assert '"name":"com.shop.Customer"' in stored["com.shop.Order"]
    SchemaText.objects.update(document="")
    import_module("mgmt.migrations.0048_event_types").fill_documents(apps, connection.schema_editor())
    assert dict(SchemaText.objects.values_list("name", "document")) == stored


def test_subject_names_the_sources_that_use_it(pipe: Pipe, tenant: Tenant, bob: User):
    orders = register(tenant, bob)
    assert producers_of(orders) == []
    set_event_types(source=pipe.sources.get(), type_from="field:type", subjects={"b": "orders", "a": "orders"}, by=bob)
    [found] = producers_of(orders)
    assert (found.source.pipe, found.source.name, found.type_names) == (pipe, "shop", ("a", "b"))
    assert found.destinations == tuple(pipe.destinations.order_by("name").values_list("name", flat=True))


def test_asyncapi_document_lists_sources_and_the_newest_schemas(
    editor: APIClient, pipe: Pipe, tenant: Tenant, bob: User, charlie: User, client_of: MakeClient
):
    register(tenant, bob)
    register(tenant, bob, V2)
    set_event_types(source=pipe.sources.get(), type_from="field:type", subjects={"a/b": "orders"}, by=bob)
    document = editor.get("/api/v1/asyncapi/").json()
    assert document["asyncapi"] == "3.0.0"
    [(key, channel)] = document["channels"].items()
    assert document["operations"] == {f"send.{key}": {"action": "send", "channel": {"$ref": f"#/channels/{key}"}}}
    assert channel["servers"] == [{"$ref": "#/servers/ingest"}]
    assert set(document["servers"]["ingest"]) == {"host", "protocol", "security"}
    [(name, message)] = channel["messages"].items()
    assert (name, message["name"]) == ("1-a-b", "a/b")
    assert message["payload"]["schemaFormat"] == "application/vnd.apache.avro;version=1.9.0"
    schema = message["payload"]["schema"]
    assert (schema["name"], schema["namespace"]) == ("Order", "com.shop")
    assert [one["name"] for one in schema["fields"]] == ["id", "total", "note"]
    foreign = client_of(charlie)
    assert foreign.get("/api/v1/asyncapi/").json()["channels"] == {}
    assert foreign.get(f"/api/v1/asyncapi/?tenant={tenant.id}").status_code == 404
    close_pipe(pipe=pipe)
    assert editor.get("/api/v1/asyncapi/").json()["channels"] == {}


def test_revision_with_a_field_that_no_event_type_has_is_refused_at_its_place(
    editor: APIClient, url: str, pipe: Pipe, tenant: Tenant, bob: User, a_spec: MakeSpec
):
    register(tenant, bob)
    put(editor, url, {"": "orders"}, type_from="")
    revisions = f"/api/v1/pipes/{pipe.id}/revisions/"
    mask = {"op": "mask", "path": "totl"}
    answer = editor.post(revisions, {"based_on": 1, "spec": a_spec() | {"normalize": [mask]}}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (422, "spec-invalid")
    assert answer.json()["errors"][0]["pointer"] == "#/spec/normalize/0/path"
    assert "did you mean `total`?" in answer.json()["detail"]
    fixed = a_spec() | {"normalize": [mask | {"path": "total"}]}
    assert editor.post(revisions, {"based_on": 1, "spec": fixed}, format="json").status_code == 201


def test_schemas_that_would_take_seconds_to_read_are_not_checked(
    pipe: Pipe, tenant: Tenant, bob: User, monkeypatch: pytest.MonkeyPatch
):
    register(tenant, bob)
    set_event_types(source=pipe.sources.get(), type_from="", subjects={"": "orders"}, by=bob)
    assert event_shapes_of(pipe.id)
    monkeypatch.setattr(queries, "MAX_FOLLOWED_CHARS", 10)
    assert event_shapes_of(pipe.id) == {}


def test_field_of_an_earlier_avro_version_may_be_used(url: str, pipe: Pipe, tenant: Tenant, bob: User):
    register(tenant, bob, V2)
    set_subject_compatibility(tenant=tenant, subject="orders", level=Compatibility.NONE)
    note = record(id="string", total="double", comment={"type": ["null", "string"], "default": None})
    register(tenant, bob, note)
    source = pipe.sources.get()
    set_event_types(source=source, type_from="", subjects={"": "orders"}, by=bob)
    shape = event_shapes_of(pipe.id)[source.name]
    assert shape.at(["note"]) is not None
    assert shape.at(["nte"]) is None
