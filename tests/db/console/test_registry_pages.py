"""Pages of the event catalogue: subjects, versions and their changes, and the form that registers a schema."""

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import DjangoAssertNumQueries

from dataplane.schemas.types import SchemaType
from mgmt.models import Subject, SubjectVersion, Tenant, User
from mgmt.registry import pages, services
from mgmt.registry.drafts import SchemaDraft, SchemaReference
from mgmt.services import register_version
from tests.db.console.truth import BrowserOf, plain
from tests.db.mgmt.registry_schemas import BREAKING, V1, V2, record

pytestmark = pytest.mark.django_db
ORDERS = "orders-value"
LIST, PAGE = 10, 12
IDL = b"""
/** Events of the shop. */
@namespace("com.shop")
protocol Shop {
  record Customer { string name; }
  record Order { string id; Customer customer; }
}
"""


@pytest.fixture
def new() -> str:
    return reverse("console:register_version")


@pytest.fixture
def orders(tenant: Tenant, alice: User) -> Subject:
    """Subject with two versions."""
    for schema in (V1, V2):
        made, _ = register_version(tenant=tenant, subject=ORDERS, draft=draft(schema), author=alice)
    return made.subject


def draft(schema: Any, *references: SchemaReference) -> SchemaDraft:
    return SchemaDraft(SchemaType.AVRO, json.dumps(schema), references)


def post(browser: Client, url: str, schema: Any = "", **more: Any) -> Any:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return browser.post(url, {"subject": ORDERS, "type": "AVRO", "schema": text, "action": "register"} | more)


def test_empty_catalogue_teaches_the_first_steps(alices: Client, tenant: Tenant, new: str):
    shown = plain(alices.get("/schemas/").text)
    assert "No schemas yet." in shown
    assert "/registry" in shown
    assert f'href="{new}"' in alices.get("/schemas/").text
    assert "com.shop" in alices.get(new).text, "the form begins with an example"


def test_catalogue_lists_subjects_with_type_versions_level_and_owner(alices: Client, orders: Subject):
    shown = plain(alices.get("/schemas/").text)
    assert f"{ORDERS} Avro 2 0 BACKWARD (default) alice" in shown
    assert "No subject has" in alices.get("/schemas/?q=none").text
    assert ORDERS in plain(alices.get("/schemas/?q=ORDERS").text)
    exported = alices.get("/schemas/?format=csv")
    assert ORDERS in b"".join(exported.streaming_content).decode()  # type: ignore[attr-defined]


def test_schema_is_checked_and_then_registered(alices: Client, tenant: Tenant, new: str):
    checked = post(alices, new, V1, action="check").text
    assert "The schema is valid" in checked
    assert not SubjectVersion.objects.exists()
    made = post(alices, new, V1)
    assert made["Location"] == reverse("console:subject", args=[Subject.objects.get().id])
    assert "Version 1 of orders-value registered, with the id 1." in alices.get(made["Location"]).text
    assert "Equal to version 1" in alices.get(post(alices, new, V1)["Location"]).text
    assert "Compatible at level BACKWARD" in post(alices, new, V2, action="check").text


def test_refusal_shows_every_place_and_offers_the_next_subject(alices: Client, orders: Subject, new: str):
    for action in ("register", "check"):
        answer = post(alices, new, BREAKING, action=action)
        assert answer.status_code == 409
        shown = plain(answer.text)
        assert "Not registered: 2 places are incompatible" in shown
        assert "id /fields/0/type a reader of long" in shown
        assert "tax /fields/2 field tax has no default" in shown
        assert "a reader of long cannot read string" in shown
        assert 'name="as" value="orders.v2-value"' in answer.text
        assert "&quot;tax&quot;" in answer.text, "the typed schema is kept"
    post(alices, new, BREAKING, **{"as": "orders.v2-value"})
    assert Subject.objects.get(name="orders.v2-value").versions.count() == 1


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"schema": "{"}, "needs JSON: line 1 column 2"),
        ({"schema": '{"type": "record", "name": "A", "fields": [{"name": "x", "type": "y"}]}'}, "/fields/0/type"),
        ({"subject": ""}, "The subject needs 1-255 printable characters"),
        ({"references": "one two"}, "needs name, subject and version"),
        ({"references": "com.shop.A nothing 1"}, "needs a registered version"),
        ({"type": "PROTOBUF"}, "needs the type AVRO or JSON"),
        ({"schema": "<script>alert(1)</script>"}, "&lt;script&gt;"),
    ],
)
def test_error_is_shown_at_its_field(alices: Client, tenant: Tenant, new: str, more: dict[str, str], words: str):
    fields = {"subject": ORDERS, "type": "AVRO", "schema": json.dumps(V1), "action": "register"} | more
    answer = alices.post(new, fields)
    assert answer.status_code == 422
    assert words in answer.text
    assert not SubjectVersion.objects.exists()


def test_file_of_a_schema_replaces_the_text(alices: Client, tenant: Tenant, new: str):
    post(alices, new, "ignored", file=SimpleUploadedFile("order.avsc", json.dumps(V1).encode()))
    assert json.loads(SubjectVersion.objects.get().schema.text) == V1
    for content in (b"\xff\xfe", b"x" * 70_000):
        assert post(alices, new, file=SimpleUploadedFile("a.avsc", content)).status_code == 422


def test_types_of_an_idl_file_are_offered_and_the_chosen_one_is_registered(alices: Client, tenant: Tenant, new: str):
    offered = post(alices, new, file=SimpleUploadedFile("shop.avdl", IDL), subject="")
    assert "The file has 2 types" in plain(offered.text)
    assert 'name="pick" value="com.shop.Order"' in offered.text
    assert not SubjectVersion.objects.exists()
    post(alices, new, IDL.decode(), pick="com.shop.Order", subject="")
    made = SubjectVersion.objects.get()
    assert (made.subject.name, made.schema.name) == ("com.shop.Order", "com.shop.Order")
    broken = post(alices, new, file=SimpleUploadedFile("shop.avdl", b"protocol {"))
    assert broken.status_code == 422
    assert "line 1 column 10" in plain(broken.text)


def test_references_are_entered_one_a_line(alices: Client, tenant: Tenant, new: str):
    post(alices, new, record("com.shop.Customer", name="string"), subject="customers")
    post(alices, new, record(customer="com.shop.Customer"), references="com.shop.Customer customers latest\n")
    version = SubjectVersion.objects.get(subject__name=ORDERS)
    assert version.schema.references == [{"name": "com.shop.Customer", "subject": "customers", "version": 1}]
    shown = plain(alices.get(reverse("console:subject", args=[version.subject_id])).text)
    assert "Refers to com.shop.Customer , version 1 of customers" in shown
    customers = Subject.objects.get(name="customers")
    assert f"Used by {ORDERS}" in plain(alices.get(reverse("console:subject", args=[customers.id])).text)
    begun = alices.get(new, {"subject": version.subject_id}).text
    assert "com.shop.Customer customers 1" in begun


def test_subject_page_shows_fields_and_the_changes_between_versions(alices: Client, orders: Subject):
    url = reverse("console:subject", args=[orders.id])
    shown = plain(alices.get(url).text)
    assert "Fields of version 2" in shown
    assert "note null | string default null" in shown
    assert "id string required" in shown
    first = plain(alices.get(url, {"version": 1}).text)
    assert "Fields of version 1" in first
    changed = alices.get(url, {"since": 1, "version": 2}).text
    assert "Changes from version 1 to 2" in plain(changed)
    assert "Added note : null | string, default null" in plain(changed)
    assert '<span class="new">' in changed


def test_level_owner_and_deprecation_are_changed(alices: Client, orders: Subject):
    url = reverse("console:change_subject", args=[orders.id])
    alices.post(url, {"level": "FULL", "owner": "team orders", "action": "save"})
    orders.refresh_from_db()
    assert (orders.compatibility, orders.owner) == ("FULL", "team orders")
    page = reverse("console:subject", args=[orders.id])
    assert "FULL · owner team orders" in plain(alices.get(page).text)
    alices.post(url, {"action": "deprecate", "version": 1})
    assert orders.versions.get(number=1).deprecated_at
    alices.post(url, {"action": "restore", "version": 1})
    assert not orders.versions.get(number=1).deprecated_at
    alices.post(url, {"action": "deprecate"})
    shown = plain(alices.get(page).text)
    assert "no new version is accepted" in shown
    assert "Register version" not in shown
    alices.post(url, {"action": "restore"})
    assert "Register version 3" in plain(alices.get(page).text)
    alices.post(url, {"action": "save", "level": "", "owner": "x" * 81})
    assert "needs at most 80" in alices.get(page).text


def test_default_level_is_set(alices: Client, orders: Subject):
    alices.post(reverse("console:set_default_level"), {"level": "NONE"})
    assert "NONE (default)" in plain(alices.get("/schemas/").text)


def test_viewer_reads_only_and_other_tenant_gets_404(
    browser_of: BrowserOf, viewer: User, charlie: User, alice: User, orders: Subject, new: str, client: Client
):
    page, change = reverse("console:subject", args=[orders.id]), reverse("console:change_subject", args=[orders.id])
    reader, foreigner = browser_of(viewer), browser_of(charlie)
    assert [reader.get(path).status_code for path in ("/schemas/", page)] == [200, 200]
    assert "Register" not in plain(reader.get(page).text).replace("Registered", "").replace("register", "")
    assert [reader.get(new).status_code, post(reader, new, V1).status_code] == [403, 403]
    assert reader.post(change, {"action": "deprecate"}).status_code == 403
    assert reader.post(reverse("console:set_default_level"), {"level": "NONE"}).status_code == 403
    assert [foreigner.get(page).status_code, foreigner.post(change, {}).status_code] == [404, 404]
    assert "No schemas yet." in plain(foreigner.get("/schemas/").text)
    assert f'value="{ORDERS}"' not in foreigner.get(new, {"subject": orders.id}).text
    assert f'value="{ORDERS}"' in browser_of(alice).get(new, {"subject": orders.id}).text
    for path in ("/schemas/", page, new):
        assert client.get(path).status_code == 302
    orders.refresh_from_db()
    assert orders.deprecated_at is None


def test_subject_shows_an_example_of_the_chosen_version(alices: Client, tenant: Tenant, alice: User):
    for schema in (V1, record(id="string")):
        made, _ = register_version(tenant=tenant, subject="free", draft=draft(schema), author=alice)
    page = reverse("console:subject", args=[made.subject_id])
    examples = [json.loads(alices.get(page, {"version": number}).context["example"]) for number in (1, 2)]
    assert examples == [{"id": "text", "total": 1.5}, {"id": "text"}]


def test_query_counts_are_the_same_for_few_rows_and_many(
    alices: Client,
    orders: Subject,
    tenant: Tenant,
    alice: User,
    django_assert_num_queries: DjangoAssertNumQueries,
):
    page = reverse("console:subject", args=[orders.id])
    with django_assert_num_queries(LIST):
        alices.get("/schemas/")
    with django_assert_num_queries(PAGE):
        alices.get(page, {"since": 1})
    for number in range(5):
        schema = record(id="string", total="double", **{f"f{number}": {"type": "int", "default": 0}})
        register_version(tenant=tenant, subject=ORDERS, draft=draft(schema), author=alice)
        register_version(tenant=tenant, subject=f"more-{number}", draft=draft(schema), author=alice)
    with django_assert_num_queries(LIST):
        alices.get("/schemas/")
    with django_assert_num_queries(PAGE):
        alices.get(page, {"since": 1})


def test_refused_registration_is_checked_once(
    alices: Client, new: str, orders: Subject, monkeypatch: pytest.MonkeyPatch
):
    calls, check = [], services.check_draft

    def counted(**what: Any) -> Any:
        calls.append(what)
        return check(**what)

    monkeypatch.setattr(services, "check_draft", counted)
    monkeypatch.setattr(pages, "check_draft", counted)
    form = {"subject": orders.name, "type": "AVRO", "schema": json.dumps(BREAKING), "action": "register"}
    answer = alices.post(new, form)
    assert (answer.status_code, "Incompatible at level" in answer.content.decode()) == (409, True)
    assert len(calls) == 1
