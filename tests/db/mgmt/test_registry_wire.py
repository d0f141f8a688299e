"""Wire API of Confluent's Schema Registry: requests, responses and error codes as its documentation has them."""

import json
from typing import Any

import pytest
from django.db import OperationalError
from rest_framework.test import APIClient

from config.serve import refusal as front_refusal
from mgmt.models import Membership, SchemaText, Subject, SubjectVersion, Tenant, User
from mgmt.services import add_member, create_tenant
from mgmt.web import throttling
from tests.db.cast import MakeClient
from tests.db.mgmt.registry_schemas import BREAKING, V1, V2, WIRE, WireClient, as_text, record

pytestmark = pytest.mark.django_db
ORDERS = "orders-value"


@pytest.fixture
def wire(bob: User, tenant: Tenant, client_of: MakeClient) -> WireClient:
    return WireClient(client_of(bob))


def refusal(answer: Any) -> tuple[int, int]:
    """Return status and error code; the body has nothing but error_code and message, which old clients require."""
    assert set(answer.json()) == {"error_code", "message"}
    assert answer.json()["message"]
    return answer.status_code, answer.json()["error_code"]


def test_registered_schema_is_found_by_subject_version_and_id(wire: WireClient):
    answer = wire.register(ORDERS, V1)
    assert (answer.status_code, answer["Content-Type"]) == (200, WIRE)
    number = answer.json()["id"]
    assert answer.json() == {"id": number}
    whole = {"subject": ORDERS, "version": 1, "id": number, "schema": json.dumps(V1)}
    for version in ("1", "latest", "-1"):
        assert wire.send("GET", f"/subjects/{ORDERS}/versions/{version}").json() == whole
    assert wire.send("GET", "/subjects").json() == [ORDERS]
    assert wire.send("GET", f"/subjects/{ORDERS}/versions").json() == [1]
    assert wire.send("GET", f"/schemas/ids/{number}?subject={ORDERS}").json() == {"schema": json.dumps(V1)}
    assert wire.send("GET", f"/schemas/ids/{number}?fetchMaxId=true").json()["maxId"] == number
    assert wire.send("GET", f"/subjects/{ORDERS}/versions/1/schema").json() == V1
    assert wire.send("GET", f"/schemas/ids/{number}/schema").json() == V1
    assert wire.send("GET", f"/schemas/ids/{number}/subjects").json() == [ORDERS]
    assert wire.send("GET", f"/schemas/ids/{number}/versions").json() == [{"subject": ORDERS, "version": 1}]
    assert wire.send("POST", f"/subjects/{ORDERS}", {"schema": json.dumps(V1)}).json() == whole
    assert wire.send("GET", "/schemas/types").json() == ["AVRO", "JSON"]
    assert wire.send("GET", "/").json() == {}


def test_schema_has_one_id_in_all_subjects_and_one_version_in_each(wire: WireClient):
    numbers = {wire.register(name, V1).json()["id"] for name in (ORDERS, "orders-key", ORDERS)}
    assert len(numbers) == 1
    assert wire.send("GET", f"/schemas/ids/{numbers.pop()}/subjects").json() == ["orders-key", ORDERS]
    assert SubjectVersion.objects.count() == 2


def test_text_in_another_form_is_the_same_schema_and_another_default_is_not(wire: WireClient):
    first = wire.register(ORDERS, V2).json()["id"]
    full = {"fields": V2["fields"], "name": "com.shop.Order", "type": "record"}
    verbose = {**full, "fields": [{**V2["fields"][0], "type": {"type": "string"}}, *V2["fields"][1:]]}
    for other in (json.dumps(V2, indent=4), full, verbose):
        assert wire.register(ORDERS, other, normalize=True).json()["id"] == first
        found = wire.send("POST", f"/subjects/{ORDERS}?normalize=True", {"schema": as_text(other)})
        assert found.json()["version"] == 1
    documented = {**V2, "doc": "An order."}
    assert wire.send("POST", f"/subjects/{ORDERS}", {"schema": json.dumps(documented)}).json()["error_code"] == 40403
    assert wire.register(ORDERS, documented).json()["id"] != first
    assert len(set(SchemaText.objects.values_list("fingerprint", flat=True))) == 1, "both have one canonical form"


def test_metadata_and_rule_set_of_a_registration_are_ignored(wire: WireClient):
    more = {"metadata": {"properties": {"owner": "shop"}}, "ruleSet": {"domainRules": []}, "id": -1, "version": -1}
    assert wire.register(ORDERS, V1, **more).status_code == 200
    assert wire.register("others-value", V1, metadata=None, ruleSet=None, references=None).status_code == 200


def test_primitive_is_a_schema_and_needs_quotes(wire: WireClient):
    assert wire.register("names-key", '"string"').json() == wire.register("names-key", '{"type": "string"}').json()
    assert wire.send("GET", "/subjects/names-key/versions/1").json()["schema"] == '"string"'
    assert refusal(wire.register("names-key", "string")) == (422, 42201)


def test_incompatible_registration_is_409_and_names_every_place_and_the_next_subject(wire: WireClient):
    wire.register(ORDERS, V1)
    answer = wire.register(ORDERS, BREAKING)
    assert refusal(answer) == (409, 409)
    message = answer.json()["message"]
    assert all(part in message for part in ("/fields/0/type", "/fields/2", "version 1", "orders.v2-value"))
    assert wire.send("GET", f"/subjects/{ORDERS}/versions").json() == [1]
    assert wire.register("orders.v2-value", BREAKING).status_code == 200


def test_verbose_check_returns_reader_writer_and_reason_of_every_place(wire: WireClient):
    wire.register(ORDERS, V1)
    body = {"schema": json.dumps(BREAKING)}
    path = f"/compatibility/subjects/{ORDERS}/versions"
    for where in (f"{path}/latest", f"{path}/1", path):
        assert wire.send("POST", where, body).json() == {"is_compatible": False}
        found = wire.send("POST", f"{where}?verbose=True&normalize=False", body).json()
        assert found["is_compatible"] is False
        text = "\n".join(found["messages"])
        assert "errorType:'TYPE_MISMATCH'" in text
        assert "errorType:'READER_FIELD_MISSING_DEFAULT_VALUE'" in text
        assert "path: /fields/0/type, reader: long, writer: string" in text
        assert "{oldSchemaVersion: 1}" in found["messages"]
        assert f"{{oldSchema: '{json.dumps(V1)}'}}" in found["messages"]
        assert "{compatibility: 'BACKWARD'}" in found["messages"]
    fine = wire.send("POST", f"{path}/latest?verbose=true", {"schema": json.dumps(V2)}).json()
    assert fine == {"is_compatible": True, "messages": []}
    assert wire.send("GET", f"/subjects/{ORDERS}/versions").json() == [1]


def test_check_against_one_version_ignores_the_others(wire: WireClient):
    wire.send("PUT", f"/config/{ORDERS}", {"compatibility": "NONE"})
    wire.register(ORDERS, V1)
    wire.register(ORDERS, BREAKING)
    wire.send("PUT", f"/config/{ORDERS}", {"compatibility": "BACKWARD"})
    path, body = f"/compatibility/subjects/{ORDERS}/versions", {"schema": json.dumps(V2)}
    assert wire.send("POST", f"{path}/1", body).json() == {"is_compatible": True}
    assert wire.send("POST", f"{path}/2", body).json() == {"is_compatible": False}
    assert wire.send("POST", f"{path}/latest", body).json() == {"is_compatible": False}


def test_transitive_level_compares_with_every_version(wire: WireClient):
    wire.send("PUT", f"/config/{ORDERS}", {"compatibility": "BACKWARD"})
    first, second = record(a={"type": "int", "default": 1}), record(b="int", a={"type": "int", "default": 1})
    wire.send("PUT", f"/config/{ORDERS}", {"compatibility": "NONE"})
    for schema in (first, second):
        wire.register(ORDERS, schema)
    third = record(b="int")
    for level, expected in (("BACKWARD", True), ("BACKWARD_TRANSITIVE", False)):
        wire.send("PUT", f"/config/{ORDERS}", {"compatibility": level})
        body = {"schema": json.dumps(third)}
        found = wire.send("POST", f"/compatibility/subjects/{ORDERS}/versions?verbose=true", body).json()
        assert found["is_compatible"] is expected
        assert ("{oldSchemaVersion: 1}" in found["messages"]) is not expected


def test_levels_are_read_set_and_reset_for_the_tenant_and_for_a_subject(wire: WireClient):
    assert wire.send("GET", "/config").json() == {"compatibilityLevel": "BACKWARD"}
    assert wire.send("PUT", "/config", {"compatibility": "full"}).json() == {"compatibility": "FULL"}
    assert wire.send("GET", "/config/").json() == {"compatibilityLevel": "FULL"}
    assert refusal(wire.send("GET", f"/config/{ORDERS}")) == (404, 40408)
    assert wire.send("GET", f"/config/{ORDERS}?defaultToGlobal=true").json() == {"compatibilityLevel": "FULL"}
    assert wire.send("PUT", f"/config/{ORDERS}", {"compatibility": "NONE"}).json() == {"compatibility": "NONE"}
    assert wire.send("GET", f"/config/{ORDERS}").json() == {"compatibilityLevel": "NONE"}
    assert wire.send("GET", "/subjects").json() == [], "a subject without a version is not listed"
    assert wire.send("DELETE", f"/config/{ORDERS}").json() == {"compatibilityLevel": "NONE"}
    assert refusal(wire.send("DELETE", f"/config/{ORDERS}")) == (404, 40401)
    assert wire.send("DELETE", "/config").json() == {"compatibilityLevel": "FULL"}
    assert wire.send("GET", "/config").json() == {"compatibilityLevel": "BACKWARD"}


def test_default_level_applies_to_subjects_without_one(wire: WireClient):
    wire.register(ORDERS, V1)
    wire.send("PUT", "/config", {"compatibility": "NONE"})
    assert wire.register(ORDERS, BREAKING).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("GET", "/subjects/none/versions", None, (404, 40401)),
        ("GET", "/subjects/none/versions/1", None, (404, 40401)),
        ("GET", "/subjects/none/versions/latest", None, (404, 40401)),
        ("POST", "/subjects/none", {"schema": '"string"'}, (404, 40401)),
        ("DELETE", "/subjects/none", None, (404, 40401)),
        ("GET", f"/subjects/{ORDERS}/versions/2", None, (404, 40402)),
        ("GET", f"/subjects/{ORDERS}/versions/2/schema", None, (404, 40402)),
        ("POST", f"/compatibility/subjects/{ORDERS}/versions/2", {"schema": '"string"'}, (404, 40402)),
        ("POST", "/compatibility/subjects/none/versions/1", {"schema": '"string"'}, (404, 40401)),
        ("GET", "/schemas/ids/99", None, (404, 40403)),
        ("GET", "/schemas/ids/99999999999999999999", None, (404, 40403)),
        ("GET", "/schemas/ids/99/versions", None, (404, 40403)),
        ("GET", "/schemas/ids/99/subjects", None, (404, 40403)),
        ("POST", f"/subjects/{ORDERS}", {"schema": '"int"'}, (404, 40403)),
        ("GET", f"/subjects/{ORDERS}/versions/0", None, (422, 42202)),
        ("GET", f"/subjects/{ORDERS}/versions/first", None, (422, 42202)),
        ("GET", f"/subjects/{ORDERS}/versions/2147483648", None, (422, 42202)),
        ("POST", f"/subjects/{ORDERS}/versions", {"schema": '{"type": "recor"}'}, (422, 42201)),
        ("POST", f"/subjects/{ORDERS}/versions", {"schema": "{"}, (422, 42201)),
        ("POST", f"/subjects/{ORDERS}/versions", {"schema": ""}, (422, 42201)),
        ("POST", f"/subjects/{ORDERS}/versions", {}, (422, 42201)),
        ("POST", f"/subjects/{ORDERS}/versions", {"schema": '"string"', "schemaType": "PROTOBUF"}, (422, 42201)),
        ("POST", f"/subjects/{ORDERS}/versions", {"schema": '"\ud800"'}, (422, 42201)),
        ("POST", f"/subjects/{ORDERS}/versions", {"schema": '{"type": "string", "x": "\\ud800"}'}, (422, 42201)),
        ("POST", f"/subjects/{ORDERS}/versions", {"schema": '"\x00"'}, (422, 42201)),
        ("POST", f"/subjects/{ORDERS}/versions", {"schema": '"string"', "references": [{}]}, (422, 42201)),
        ("POST", f"/subjects/{ORDERS}/versions", {"schema": '"string"', "references": 7}, (422, 42201)),
        ("POST", f"/subjects/{ORDERS}/versions", [], (422, 422)),
        ("POST", "/subjects/%00/versions", {"schema": '"string"'}, (422, 42208)),
        ("PUT", "/config", {"compatibility": "SIDEWAYS"}, (422, 42203)),
        ("PUT", f"/config/{ORDERS}", {}, (422, 42203)),
        ("PUT", "/config", None, (422, 42203)),
        ("GET", "/mode/none", None, (404, 40409)),
        ("PUT", "/mode", {"mode": "IMPORT"}, (422, 42205)),
        ("DELETE", f"/subjects/{ORDERS}?permanent=true", None, (422, 42205)),
        ("DELETE", f"/subjects/{ORDERS}/versions/1", None, (422, 42205)),
        ("GET", "/nothing", None, (404, 404)),
        ("PATCH", "/subjects", None, (405, 405)),
        ("GET", "/subjects/%00/versions", None, (404, 40401)),
    ],
)
def test_refusal_has_the_documented_code(
    wire: WireClient, method: str, path: str, body: Any, expected: tuple[int, int]
):
    wire.register(ORDERS, V1)
    assert refusal(wire.send(method, path, body)) == expected
    assert SubjectVersion.objects.count() == 1


def test_refused_deletion_names_the_alternative(wire: WireClient):
    wire.register(ORDERS, V1)
    assert "Deprecate it" in wire.send("DELETE", f"/subjects/{ORDERS}").json()["message"]


def test_mode_is_read_write(wire: WireClient):
    assert wire.send("GET", "/mode").json() == {"mode": "READWRITE"}
    assert wire.send("GET", f"/mode/{ORDERS}?defaultToGlobal=true").json() == {"mode": "READWRITE"}
    assert wire.send("PUT", "/mode", {"mode": "READWRITE"}).json() == {"mode": "READWRITE"}


def test_subject_without_versions_is_compatible_with_every_schema(wire: WireClient):
    for path in ("/latest", ""):
        answer = wire.send("POST", f"/compatibility/subjects/none/versions{path}", {"schema": json.dumps(V1)})
        assert answer.json() == {"is_compatible": True}


def test_names_with_a_slash_or_a_space_are_names_like_others(wire: WireClient):
    for encoded, name in (("a%2Fb-value", "a/b-value"), ("a%20b", "a b"), ("%C3%A9", "é"), ("a.b.C", "a.b.C")):
        wire.register(encoded, V1)
        assert wire.send("GET", f"/subjects/{encoded}/versions/latest").json()["subject"] == name
        assert wire.send("GET", f"/subjects/{encoded}/versions/1/schema").json() == V1


def test_media_type_of_the_response_is_the_first_known_one_that_is_accepted(wire: WireClient):
    for accept, expected in (
        ("application/vnd.schemaregistry+json", "application/vnd.schemaregistry+json"),
        ("text/plain, application/json; q=0.5", "application/json"),
        ("*/*", WIRE),
        ("text/html", WIRE),
    ):
        assert wire.send("GET", "/subjects", Accept=accept)["Content-Type"] == expected


def test_body_of_another_type_or_compressed_is_415(wire: WireClient):
    for more in ({"content_type": "text/plain"}, {"content_type": WIRE, "headers": {"Content-Encoding": "gzip"}}):
        answer = wire.client.generic("POST", "/registry/subjects/x/versions", "{}", **more)
        assert refusal(answer) == (415, 415)


def test_references_are_resolved_stored_and_listed(wire: WireClient):
    customer = record("com.shop.Customer", name="string")
    order = record(id="string", customer="com.shop.Customer")
    assert refusal(wire.register(ORDERS, order)) == (422, 42201)
    referring = [{"name": "com.shop.Customer", "subject": "customers", "version": 1}]
    missing = wire.register(ORDERS, order, references=referring)
    assert refusal(missing) == (422, 42201)
    assert "version 1 of customers" in missing.json()["message"]
    wire.register("customers", customer)
    number = wire.register(ORDERS, order, references=referring).json()["id"]
    assert wire.send("GET", f"/schemas/ids/{number}").json()["references"] == referring
    assert wire.send("GET", "/subjects/customers/versions/1/referencedby").json() == [number]
    latest = [referring[0] | {"version": -1}]
    assert wire.register(ORDERS, order, references=latest).json()["id"] == number


def test_changed_reference_is_compared_as_part_of_the_schema(wire: WireClient):
    wire.register("customers", record("com.shop.Customer", name="string"))
    wire.send("PUT", "/config/customers", {"compatibility": "NONE"})
    wire.register("customers", record("com.shop.Customer", name="string", age="int"))
    order = record(id="string", customer="com.shop.Customer")
    name = {"name": "com.shop.Customer", "subject": "customers"}
    assert wire.register(ORDERS, order, references=[name | {"version": 1}]).status_code == 200
    answer = wire.register(ORDERS, order, references=[name | {"version": 2}])
    assert refusal(answer) == (409, 409)
    assert "age" in answer.json()["message"]


def test_json_schema_has_its_type_in_responses(wire: WireClient):
    schema = {"type": "object", "properties": {"id": {"type": "string"}}, "additionalProperties": False}
    number = wire.register("events", schema, schemaType="JSON").json()["id"]
    expected = {"schema": json.dumps(schema), "schemaType": "JSON"}
    assert wire.send("GET", f"/schemas/ids/{number}").json() == expected
    assert refusal(wire.register("events", schema | {"required": ["id"]}, schemaType="JSON")) == (409, 409)
    assert refusal(wire.register("events", V1)) == (409, 409)


def test_viewer_reads_and_checks_but_registers_nothing(wire: WireClient, tenant: Tenant, client_of: MakeClient):
    wire.register(ORDERS, V1)
    vera = User.objects.create_user("vera")
    add_member(tenant=tenant, user=vera, role=Membership.Role.VIEWER)
    reader = WireClient(client_of(vera))
    assert reader.send("GET", f"/subjects/{ORDERS}/versions/1").status_code == 200
    body = {"schema": json.dumps(V2)}
    assert reader.send("POST", f"/subjects/{ORDERS}", {"schema": json.dumps(V1)}).status_code == 200
    assert reader.send("POST", f"/compatibility/subjects/{ORDERS}/versions/1", body).status_code == 200
    for method, path, sent in (
        ("POST", f"/subjects/{ORDERS}/versions", body),
        ("PUT", "/config", {"compatibility": "NONE"}),
        ("DELETE", "/config", None),
        ("PUT", f"/config/{ORDERS}", {"compatibility": "NONE"}),
        ("DELETE", f"/config/{ORDERS}", None),
    ):
        assert refusal(reader.send(method, path, sent)) == (403, 40301)


def test_tenants_share_neither_subjects_nor_ids(wire: WireClient, charlie: User, client_of: MakeClient):
    number = wire.register(ORDERS, V1).json()["id"]
    other = WireClient(client_of(charlie))
    assert other.send("GET", "/subjects").json() == []
    assert refusal(other.send("GET", f"/schemas/ids/{number}")) == (404, 40403)
    assert refusal(other.send("GET", f"/subjects/{ORDERS}/versions/1")) == (404, 40401)
    assert other.register(ORDERS, BREAKING).json() == {"id": 1}
    assert wire.send("GET", f"/schemas/ids/{number}").json() == {"schema": json.dumps(V1)}


def test_user_with_several_tenants_names_one_in_the_url(wire: WireClient, bob: User, tenant: Tenant, charlie: User):
    second = create_tenant(name="Second", owner=bob)
    answer = wire.send("GET", "/subjects")
    assert refusal(answer) == (400, 400)
    assert "/registry/{id of the tenant}/" in answer.json()["message"]
    for one in (tenant, second):
        mine = WireClient(wire.client, f"/registry/{one.id}")
        assert mine.register(f"only-{one.name[:1]}", V1).json() == {"id": 1}
    assert sorted(Subject.objects.values_list("tenant_id", "name")) == sorted(
        [(tenant.id, "only-A"), (second.id, "only-S")]
    )
    foreign = WireClient(wire.client, f"/registry/{charlie.tenants.get().id}")
    assert refusal(foreign.send("GET", "/subjects")) == (404, 404)


def test_request_without_a_password_or_with_a_wrong_one_is_401(tenant: Tenant):
    for headers in ({}, {"Authorization": "Basic YWxpY2U6d3Jvbmc="}):
        answer = APIClient().get("/registry/subjects", headers=headers)
        assert refusal(answer) == (401, 401)
        assert answer["WWW-Authenticate"].startswith("Bearer")


def test_requests_have_the_limit_of_the_api(wire: WireClient, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(throttling, "PER_USER", throttling.PER_USER._replace(most=1))
    assert wire.send("GET", "/subjects").status_code == 200
    answer = wire.send("GET", "/subjects")
    assert refusal(answer) == (429, 429)
    assert int(answer["Retry-After"]) > 0


def test_database_that_is_away_is_50001(wire: WireClient, monkeypatch: pytest.MonkeyPatch):
    def away(*_given: Any) -> None:
        raise OperationalError

    monkeypatch.setattr("mgmt.registry.api.confluent.subject_names", away)
    answer = wire.send("GET", "/subjects")
    assert refusal(answer) == (500, 50001)
    assert answer["Retry-After"] == "5"


def test_request_that_reaches_no_view_is_refused_in_the_same_form(
    wire: WireClient, settings: Any, monkeypatch: pytest.MonkeyPatch
):
    headers, body = front_refusal("/registry/subjects/x/versions", "body-too-large", "The body is too large.")
    assert headers == [(b"content-type", WIRE.encode())]
    assert json.loads(body) == {"error_code": 413, "message": "The body is too large."}
    wire.client.raise_request_exception = False
    monkeypatch.setattr("mgmt.registry.api.confluent.subject_names", lambda *_given: 1 / 0)
    assert refusal(wire.send("GET", "/subjects")) == (500, 500)
    settings.ALLOWED_HOSTS = []
    assert refusal(wire.send("GET", "/subjects")) == (400, 400)


def test_list_is_cut_by_offset_and_limit(wire: WireClient):
    for name in "abc":
        wire.register(name, V1)
    assert wire.send("GET", "/subjects?offset=1&limit=1").json() == ["b"]
    assert wire.send("GET", "/subjects?offset=0&limit=-1&deleted=False").json() == ["a", "b", "c"]
    assert wire.send("GET", "/subjects?subjectPrefix=b").json() == ["b"]
