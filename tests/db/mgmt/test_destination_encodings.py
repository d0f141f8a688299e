"""Encodings of destinations: checked when a revision is published, and published with the schema that they name."""

import json
from typing import Any

import pytest

from controlplane.provisioner.records import desired_records
from dataplane.schemas.types import SchemaType
from dataplane.spec import SpecError
from dataplane.tables.records import DestinationRecord
from mgmt.models import Destination, Pipe, SchemaText, Subject, Tenant, User
from mgmt.registry.drafts import SchemaDraft
from mgmt.services import create_pipe, publish_revision, register_version
from tests.db.cast import MakeClient, MakeSpec
from tests.db.console.truth import go_live
from tests.db.mgmt.registry_schemas import V1, V2

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def orders(tenant: Tenant, alice: User) -> Subject:
    """Two versions of the subject `orders`, and a subject in JSON Schema."""
    text = json.dumps({"type": "object"})
    register_version(tenant=tenant, subject="people", draft=SchemaDraft(SchemaType.JSON, text), author=alice)
    for schema in (V1, V2):
        draft = SchemaDraft(SchemaType.AVRO, json.dumps(schema))
        subject = register_version(tenant=tenant, subject="orders", draft=draft, author=alice)[0].subject
    return subject


def encoded(spec: dict[str, Any], **encoding: Any) -> dict[str, Any]:
    """Return a spec whose destinations, one of each type, have an encoding."""
    given = {"format": "confluent", "subject": "orders", "version": 1} | encoding
    topic = {"type": "topic", "encoding": given}
    destinations = {name: to | {"encoding": given} for name, to in spec["destinations"].items()}
    return spec | {"destinations": destinations | {"feed": topic}}


def with_columns(spec: dict[str, Any], subject: str = "orders", version: int = 1) -> dict[str, Any]:
    """Return a spec with a lake destination that has typed columns."""
    encoding = {"format": "columns", "subject": subject, "version": version}
    return spec | {"destinations": spec["destinations"] | {"store": {"type": "lake", "encoding": encoding}}}


def published(pipe: Pipe, spec: dict[str, Any], author: User) -> Any:
    return publish_revision(pipe=pipe, spec=spec, based_on=1, author=author)


@pytest.mark.parametrize(
    ("encoding", "field", "reason"),
    [
        ({"subject": "invoices"}, "subject", "needs a subject of your schema registry, got invoices"),
        ({"version": 3}, "version", "needs a registered version of orders, got 3"),
        ({"subject": "people"}, "version", "needs an Avro schema, and version 1 is JSON"),
    ],
)
def test_unknown_schema_is_refused_at_its_field(
    pipe: Pipe, alice: User, a_spec: MakeSpec, encoding: dict[str, Any], field: str, reason: str
):
    with pytest.raises(SpecError) as caught:
        published(pipe, encoded(a_spec(), **encoding), alice)
    first = next(iter(a_spec()["destinations"]))
    assert (caught.value.path, caught.value.reason) == (f"$.destinations.{first}.encoding.{field}", reason)
    assert pipe.revisions.count() == 1


def test_subject_of_another_tenant_is_refused_as_a_missing_one(charlie: User, a_spec: MakeSpec):
    theirs = Tenant.objects.create(name="theirs")
    with pytest.raises(SpecError) as caught:
        create_pipe(tenant=theirs, name="shop", spec=encoded(a_spec()), author=charlie)
    assert caught.value.path.endswith(".encoding.subject")


def test_batches_are_json(pipe: Pipe, alice: User, a_spec: MakeSpec):
    spec = encoded(a_spec())
    first = next(iter(a_spec()["destinations"]))
    spec["destinations"][first]["batch"] = {"max_events": 10}
    with pytest.raises(SpecError) as caught:
        published(pipe, spec, alice)
    assert caught.value.path == f"$.destinations.{first}.encoding"


def test_api_names_the_field(alice: User, pipe: Pipe, a_spec: MakeSpec, client_of: MakeClient):
    body = {"based_on": 1, "spec": encoded(a_spec(), version=9)}
    answer = client_of(alice).post(f"/api/v1/pipes/{pipe.id}/revisions/", body, format="json")
    assert answer.status_code == 422
    assert ".encoding.version" in answer.content.decode()


def test_control_record_has_the_version_that_the_encoding_names(pipe: Pipe, alice: User, a_spec: MakeSpec):
    published(pipe, encoded(a_spec(), version=1), alice)
    go_live(pipe)
    keys = [f"destination/{pipe.id}/{name}" for name in Destination.objects.values_list("name", flat=True)]
    built = desired_records(keys)
    assert not built.broken
    stored = SchemaText.objects.get(versions__subject__name="orders", versions__number=1)
    schemas = {record.name: record.schema for record in built.records if isinstance(record, DestinationRecord)}
    assert len(schemas) == len(a_spec()["destinations"]) + 1
    for schema in schemas.values():
        assert schema is not None
        assert (schema.number, schema.schema_id, schema.document) == (1, stored.number, stored.document)


def test_record_of_a_destination_whose_schema_is_missing_is_not_built(pipe: Pipe, alice: User, a_spec: MakeSpec):
    published(pipe, encoded(a_spec()), alice)
    go_live(pipe)
    row = Destination.objects.get(pipe=pipe, name="feed")
    row.config["encoding"]["version"] = 9
    row.save()
    built = desired_records([f"destination/{pipe.id}/feed"])
    assert not built.records
    assert built.broken == {f"destination/{pipe.id}/feed": "destination feed cannot be used: no version 9 of orders"}


def test_typed_columns_of_a_lake_are_checked_and_published_as_an_encoding(pipe: Pipe, alice: User, a_spec: MakeSpec):
    for subject, version, field, reason in (
        ("invoices", 1, "subject", "needs a subject of your schema registry, got invoices"),
        ("orders", 9, "version", "needs a registered version of orders, got 9"),
        ("people", 1, "version", "needs an Avro schema, and version 1 is JSON"),
    ):
        with pytest.raises(SpecError) as caught:
            published(pipe, with_columns(a_spec(), subject, version), alice)
        assert (caught.value.path, caught.value.reason) == (f"$.destinations.store.encoding.{field}", reason)
    published(pipe, with_columns(a_spec()), alice)
    go_live(pipe)
    (built,) = desired_records([f"destination/{pipe.id}/store"]).records
    assert isinstance(built, DestinationRecord)
    stored = SchemaText.objects.get(versions__subject__name="orders", versions__number=1)
    assert built.schema is not None
    assert built.schema.document == stored.document


def test_schema_that_columns_cannot_have_is_refused(pipe: Pipe, tenant: Tenant, alice: User, a_spec: MakeSpec):
    fields = [{"name": name, "type": "int"} for name in ("Total", "total")]
    draft = SchemaDraft(SchemaType.AVRO, json.dumps({"type": "record", "name": "Twice", "fields": fields}))
    register_version(tenant=tenant, subject="twice", draft=draft, author=alice)
    with pytest.raises(SpecError) as caught:
        published(pipe, with_columns(a_spec(), "twice"), alice)
    assert caught.value.path == "$.destinations.store.encoding.version"
    assert "Total and total" in caught.value.reason


@pytest.mark.parametrize(("kind", "format_"), [("lake", "avro"), ("topic", "columns"), ("table", "columns")])
def test_format_of_another_type_of_destination_is_refused(
    pipe: Pipe, alice: User, a_spec: MakeSpec, kind: str, format_: str
):
    to = {"type": kind, "encoding": {"format": format_, "subject": "orders", "version": 1}}
    to |= {"table": "t", "key": "body.id"} if kind == "table" else {}
    with pytest.raises(SpecError) as caught:
        published(pipe, a_spec() | {"destinations": {"store": to}}, alice)
    assert caught.value.path.startswith("$.destinations.store")
