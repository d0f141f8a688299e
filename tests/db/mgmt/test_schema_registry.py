"""Schema registry in Penstock's API: register, check, look up, deprecate; limits, roles and tenants."""

import json
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries
from rest_framework.test import APIClient

from dataplane.schemas.types import SchemaRejectedError, SchemaType
from mgmt.models import Membership, RegistryDefault, SchemaText, Subject, SubjectVersion, Tenant, TenantQuota, User
from mgmt.registry import services
from mgmt.registry.drafts import SchemaDraft, from_json, next_subject
from mgmt.registry.queries import MAX_CLOSURE
from mgmt.services import (
    SchemaConflictError,
    VersionIncompatibleError,
    add_member,
    create_tenant,
    register_version,
    set_quota,
)
from tests.db.cast import MakeClient
from tests.db.mgmt.registry_schemas import BREAKING, V1, V2, record

pytestmark = pytest.mark.django_db
URL = "/api/v1/schemas/"
ORDERS = "com.shop.Order"
LIST, VERSIONS, TEXTS = 4, 5, 5


@pytest.fixture
def editor(bob: User, tenant: Tenant, client_of: MakeClient) -> APIClient:
    return client_of(bob)


def register(client: APIClient, schema: Any = V1, subject: str = ORDERS, **more: Any) -> Any:
    return client.post(URL, {"subject": subject, "schema": schema} | more, format="json")


def draft(schema: Any) -> SchemaDraft:
    return SchemaDraft(SchemaType.AVRO, json.dumps(schema))


def test_version_is_registered_once_and_read_by_its_location(editor: APIClient):
    made = register(editor)
    assert made.status_code == 201
    body = made.json()
    assert (body["subject"], body["number"], body["schema_id"], body["author"]) == (ORDERS, 1, 1, "bob")
    assert json.loads(body["schema"]) == V1
    assert editor.get(made["Location"]).json() == body
    again = register(editor, json.dumps(V1, indent=2))
    assert (again.status_code, again.json()["number"]) == (200, 1)
    assert register(editor, V2).json()["number"] == 2
    subject = editor.get(URL).json()["results"][0]
    assert (subject["name"], subject["type"], subject["versions"], subject["newest_version"]) == (ORDERS, "AVRO", 2, 2)
    assert (subject["compatibility"], subject["own_compatibility"], subject["owner"]) == ("BACKWARD", False, "bob")
    listed = editor.get(f"{URL}{subject['id']}/versions/").json()["results"]
    assert [one["number"] for one in listed] == [2, 1]
    assert [one["name"] for one in editor.get(URL, {"name": ORDERS}).json()["results"]] == [ORDERS]
    assert editor.get(URL, {"name": "other"}).json()["results"] == []


def test_incompatible_version_is_refused_naming_each_place_and_the_next_subject(editor: APIClient):
    register(editor)
    answer = register(editor, BREAKING)
    assert (answer.status_code, answer.json()["code"]) == (409, "schema-incompatible")
    errors = {error["pointer"]: error["detail"] for error in answer.json()["errors"]}
    assert set(errors) == {"#/schema/fields/0/type", "#/schema/fields/2"}
    assert "reader: long; writer: string; TYPE_MISMATCH" in errors["#/schema/fields/0/type"]
    assert "register it as com.shop.v2.Order" in answer.json()["detail"]
    assert register(editor, BREAKING | {"namespace": "com.shop.v2"}, "com.shop.v2.Order").status_code == 201
    assert Subject.objects.get(name=ORDERS).versions.count() == 1


def test_check_reports_each_place_and_stores_nothing(editor: APIClient):
    register(editor)
    answer = editor.post(f"{URL}check/", {"subject": ORDERS, "schema": BREAKING}, format="json").json()
    assert (answer["compatible"], answer["level"], answer["suggested_subject"]) == (
        False,
        "BACKWARD",
        "com.shop.v2.Order",
    )
    first = answer["incompatibilities"][0]
    assert (first["version"], first["pointer"], first["reader"], first["writer"]) == (
        1,
        "/fields/0/type",
        "long",
        "string",
    )
    fine = editor.post(f"{URL}check/", {"subject": ORDERS, "schema": V2}, format="json").json()
    assert (fine["compatible"], fine["incompatibilities"], fine["suggested_subject"]) == (True, [], None)
    assert SubjectVersion.objects.count() == SchemaText.objects.count() == 1


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ("{", "#/schema"),
        ({"type": "record", "name": "A", "fields": [{"name": "x", "type": "strin"}]}, "#/schema/fields/0/type"),
        ({"type": "record", "name": "A"}, "#/schema/fields"),
        ('{"type": "string", "note": "\\ud800"}', "#/schema"),
        ("\x00", "#/schema"),
    ],
)
def test_invalid_schema_is_refused_at_its_place(editor: APIClient, schema: Any, pointer: str):
    answer = register(editor, schema)
    assert (answer.status_code, answer.json()["code"]) == (422, "schema-invalid")
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert not Subject.objects.exists()


def test_schema_that_is_too_large_or_too_expensive_is_refused(editor: APIClient, monkeypatch: pytest.MonkeyPatch):
    large = record(**{f"field{number}": "string" for number in range(3_000)})
    assert register(editor, large).json()["code"] == "schema-invalid"
    reason = register(editor, {"type": "string", "note": "x" * 70_000}).json()["errors"][0]["detail"]
    assert "at most 65536 bytes" in reason
    monkeypatch.setattr("mgmt.sandbox.CHECK_S", 0.001)
    inner = {"type": "array", "items": {"type": "map", "values": ["null", "int"]}}
    expensive = record(**{f"f{number}": {"type": inner} for number in range(650)})  # 17 ms on a fast machine
    assert "too expensive to check" in register(editor, expensive).json()["errors"][0]["detail"]
    assert not SubjectVersion.objects.exists()


@pytest.mark.parametrize("name", ["", " x", "x" * 256, "a\x00", "a\nb"])
def test_unprintable_or_too_long_name_is_refused(editor: APIClient, name: str):
    answer = register(editor, subject=name)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert not Subject.objects.exists()


def test_missing_reference_is_refused_at_its_place(editor: APIClient):
    references = [{"name": "com.shop.Customer", "subject": "customers", "version": 3}]
    answer = register(editor, record(customer="com.shop.Customer"), references=references)
    assert [error["pointer"] for error in answer.json()["errors"]] == ["#/references/0"]


def test_schema_is_found_by_fingerprint_and_by_id(editor: APIClient, client_of: MakeClient, charlie: User):
    made = register(editor).json()
    found = editor.get(f"{URL}texts/", {"fingerprint": made["fingerprint"]}).json()["results"]
    assert [(one["schema_id"], one["versions"]) for one in found] == [(1, [{"subject": ORDERS, "number": 1}])]
    assert editor.get(f"{URL}texts/", {"schema_id": 1}).json()["results"] == found
    assert editor.get(f"{URL}texts/", {"schema_id": 2}).json()["results"] == []
    assert editor.get(f"{URL}texts/", {"fingerprint": "0" * 64}).json()["results"] == []
    assert editor.get(f"{URL}texts/", {"fingerprint": "0"}).json()["code"] == "parameter-invalid"
    assert client_of(charlie).get(f"{URL}texts/", {"fingerprint": made["fingerprint"]}).json()["results"] == []


def test_level_owner_and_deprecation_of_a_subject_are_changed(editor: APIClient):
    register(editor)
    url = f"{URL}{Subject.objects.get().id}/"
    body = {"compatibility": "FULL", "owner": "team orders", "deprecated": True}
    changed = editor.patch(url, body, format="json").json()
    assert (changed["compatibility"], changed["own_compatibility"], changed["owner"]) == ("FULL", True, "team orders")
    assert changed["deprecated_at"]
    refused = register(editor, V2)
    assert (refused.status_code, refused.json()["code"]) == (409, "subject-deprecated")
    assert register(editor).status_code == 200, "an existing version is found as before"
    restored = editor.patch(url, {"deprecated": False, "compatibility": None}, format="json").json()
    assert (restored["deprecated_at"], restored["own_compatibility"], restored["owner"]) == (None, False, "team orders")
    assert register(editor, V2).status_code == 201


def test_version_is_deprecated_and_restored(editor: APIClient):
    url = register(editor)["Location"]
    assert editor.patch(url, {"deprecated": True}, format="json").json()["deprecated_at"]
    assert editor.patch(url, {"deprecated": False}, format="json").json()["deprecated_at"] is None
    assert editor.patch(url, {"schema": "{}"}, format="json").json()["code"] == "invalid"


def test_default_level_of_a_tenant_is_read_and_set(editor: APIClient, tenant: Tenant):
    url = f"/api/v1/tenants/{tenant.id}/schemas/config/"
    assert editor.get(url).json() == {"compatibility": "BACKWARD"}
    assert editor.put(url, {"compatibility": "NONE"}, format="json").json() == {"compatibility": "NONE"}
    register(editor)
    assert register(editor, BREAKING).status_code == 201
    assert editor.get(URL).json()["results"][0]["compatibility"] == "NONE"
    assert RegistryDefault.objects.get().tenant == tenant


@pytest.mark.parametrize(("kind", "subject"), [("subjects", "another"), ("schema_versions", ORDERS)])
def test_quota_of_subjects_and_versions_is_kept(
    editor: APIClient, tenant: Tenant, alice: User, kind: str, subject: str
):
    register(editor)
    set_quota(tenant=tenant, limits={kind: 1}, reason="test", by=alice, now=timezone.now())
    answer = register(editor, V2, subject)
    assert (answer.status_code, answer.json()["code"]) == (409, "quota-exceeded")
    assert (Subject.objects.count(), SubjectVersion.objects.count()) == (1, 1)
    lines = {line["kind"]: line["used"] for line in editor.get(f"/api/v1/tenants/{tenant.id}/quotas/").json()["quotas"]}
    assert (lines["subjects"], lines["schema_versions"]) == (1, 1)


def test_subject_has_at_most_its_number_of_versions(editor: APIClient, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(services, "MAX_VERSIONS", 1)
    register(editor)
    assert register(editor, V2).json()["code"] == "limit-reached"


def test_number_or_schema_of_a_subject_cannot_be_stored_twice(tenant: Tenant, bob: User):
    made, _ = register_version(tenant=tenant, subject=ORDERS, draft=draft(V1), author=bob)
    other, _ = register_version(tenant=tenant, subject="other", draft=draft(V2), author=bob)
    for number, schema in ((1, other.schema), (2, made.schema)):
        with pytest.raises(IntegrityError), transaction.atomic():
            SubjectVersion.objects.create(subject=made.subject, number=number, schema=schema)


def test_registration_that_others_precede_is_checked_again(tenant: Tenant, bob: User, monkeypatch: pytest.MonkeyPatch):
    stale = services.check_draft

    def late(**given: Any) -> services.DraftCheck:
        """Register another version after the check and before the write, once."""
        found = stale(**given)
        monkeypatch.setattr(services, "check_draft", stale)
        register_version(tenant=tenant, subject=ORDERS, draft=draft(V1), author=bob)
        return found

    monkeypatch.setattr(services, "check_draft", late)
    made, is_new = register_version(tenant=tenant, subject=ORDERS, draft=draft(V2), author=bob)
    assert (made.number, is_new) == (2, True)
    monkeypatch.setattr(services, "check_draft", late)
    with pytest.raises(VersionIncompatibleError):
        register_version(tenant=tenant, subject=ORDERS, draft=draft(record(a="int")), author=bob)
    monkeypatch.setattr(services, "_store", _always_late)
    monkeypatch.setattr(services, "check_draft", stale)
    third = V2 | {"doc": "third"}
    with pytest.raises(SchemaConflictError, match="Try again"):
        register_version(tenant=tenant, subject=ORDERS, draft=draft(third), author=bob)


def _always_late(**_given: Any) -> None:
    raise IntegrityError


def test_viewer_reads_and_checks_only_and_other_tenant_sees_nothing(
    editor: APIClient, tenant: Tenant, charlie: User, client_of: MakeClient
):
    version = register(editor)["Location"]
    subject = f"{URL}{Subject.objects.get().id}/"
    vera = User.objects.create_user("vera")
    add_member(tenant=tenant, user=vera, role=Membership.Role.VIEWER)
    viewer, foreigner = client_of(vera), client_of(charlie)
    reads = [subject, version, f"{subject}versions/"]
    assert [viewer.get(path).status_code for path in (URL, *reads)] == [200] * 4
    assert viewer.post(f"{URL}check/", {"subject": ORDERS, "schema": V2}, format="json").status_code == 200
    writes = [viewer.patch(path, {"deprecated": True}, format="json") for path in (subject, version)]
    assert [(one.status_code, one.json()["code"]) for one in [*writes, register(viewer, V2)]] == [
        (403, "role-too-low")
    ] * 3
    missing = subject.replace(subject[-5:-1], "0000")
    assert [foreigner.get(path).status_code for path in [*reads, missing]] == [404] * 4
    assert [foreigner.patch(path, {"deprecated": True}).status_code for path in (subject, version)] == [404] * 2
    assert foreigner.get(URL).json()["results"] == []
    assert register(foreigner, V1, tenant=tenant.id).status_code == 404
    assert not Subject.objects.get().deprecated_at


def test_every_operation_needs_a_sign_in(editor: APIClient):
    version = register(editor)["Location"]
    subject = f"{URL}{Subject.objects.get().id}/"
    nobody = APIClient()
    reads = [nobody.get(path) for path in (URL, f"{URL}texts/", subject, version, f"{subject}versions/")]
    writes = [nobody.post(path) for path in (URL, f"{URL}check/")] + [nobody.patch(path) for path in (subject, version)]
    assert [one.status_code for one in reads + writes] == [401] * 9


def test_user_with_several_tenants_names_one(editor: APIClient, bob: User, tenant: Tenant):
    create_tenant(name="Second", owner=bob)
    assert register(editor).json()["errors"][0]["pointer"] == "#/tenant"
    assert register(editor, tenant=tenant.id).status_code == 201
    assert Subject.objects.get().tenant == tenant


def test_chain_of_too_many_references_is_refused(tenant: Tenant, bob: User, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mgmt.registry.queries.MAX_CLOSURE", 3)
    assert MAX_CLOSURE == 200
    for number in range(4):
        before = f"com.shop.T{number - 1}"
        schema = record(f"com.shop.T{number}", a=before if number else "int")
        references = [{"name": before, "subject": f"t{number - 1}", "version": 1}] if number else []
        one = SchemaDraft(SchemaType.AVRO, json.dumps(schema), from_json(references))
        if number < 3:
            register_version(tenant=tenant, subject=f"t{number}", draft=one, author=bob)
        else:
            with pytest.raises(SchemaRejectedError, match="more than 3 schemas"):
                register_version(tenant=tenant, subject="t3", draft=one, author=bob)


@pytest.mark.parametrize(
    ("subject", "name", "expected"),
    [
        ("com.shop.Order", "com.shop.Order", "com.shop.v2.Order"),
        ("com.shop.v2.Order", "com.shop.v2.Order", "com.shop.v3.Order"),
        ("orders-com.shop.Order", "com.shop.Order", "orders-com.shop.v2.Order"),
        ("orders-value", "com.shop.Order", "orders.v2-value"),
        ("orders.v2-key", "", "orders.v3-key"),
        ("orders", "", "orders.v2"),
        ("orders.v9", "com.shop.Order", "orders.v10"),
    ],
)
def test_next_subject_keeps_the_naming_of_the_first(subject: str, name: str, expected: str):
    assert next_subject(subject, name) == expected


def test_query_counts_are_the_same_for_few_rows_and_many(
    editor: APIClient, tenant: Tenant, bob: User, django_assert_num_queries: DjangoAssertNumQueries
):
    made = register(editor).json()
    subject = Subject.objects.get()

    def read() -> None:
        for path, queries in ((URL, LIST), (f"{URL}{subject.id}/versions/", VERSIONS), (f"{URL}texts/", TEXTS)):
            with django_assert_num_queries(queries):
                assert editor.get(path).status_code == 200

    read()
    for number in range(5):
        schema = SchemaText.objects.create(
            tenant=tenant, number=10 + number, type="AVRO", text="{}", digest=str(number), fingerprint="x"
        )
        SubjectVersion.objects.create(subject=subject, number=2 + number, schema=schema, author=bob)
        Subject.objects.create(tenant=tenant, name=f"subject {number}")
    read()
    assert made["number"] == 1
    assert not TenantQuota.objects.exists()
