"""Event types page of a source: empty state, form, errors in place, sample events; and producers of a subject."""

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries

from dataplane.schemas.parse import parse
from dataplane.schemas.types import SchemaType
from dataplane.schemas.wire import json_to_avro
from dataplane.spec.schema import compile_schema
from mgmt.event_types.samples import SampleTooLargeError, sample_event
from mgmt.models import EventType, Pipe, Subject, Tenant, User
from mgmt.registry.drafts import SchemaDraft
from mgmt.services import close_pipe, deprecate_subject, register_version, set_event_types
from tests.db.console.truth import BrowserOf, plain
from tests.db.mgmt.registry_schemas import V1, record

pytestmark = pytest.mark.django_db
QUERIES = 17


@pytest.fixture
def url(pipe: Pipe) -> str:
    return reverse("console:event_types", args=[pipe.id, "shop"])


@pytest.fixture
def orders(tenant: Tenant, alice: User) -> Subject:
    return registered(tenant, alice, "orders")


def registered(tenant: Tenant, author: User, subject: str) -> Subject:
    draft = SchemaDraft(SchemaType.AVRO, json.dumps(V1))
    return register_version(tenant=tenant, subject=subject, draft=draft, author=author)[0].subject


def form(*rows: tuple[str, str], place: str = "field", where: str = "type", based_on: int = 0) -> dict[str, Any]:
    names, subjects = [row[0] for row in rows], [row[1] for row in rows]
    return {"place": place, "where": where, "name": names, "subject": subjects, "based_on": based_on}


def test_page_explains_event_types_and_offers_to_register_a_schema(alices: Client, url: str, pipe: Pipe):
    schema = alices.get(reverse("console:schema", args=[pipe.id, "shop"])).content.decode()
    assert f'href="{url}">Change event types<' in schema
    shown = plain(alices.get(url).content.decode())
    assert "the source accepts all events" in shown
    assert "Register a schema" in shown


def test_saved_event_types_are_shown_with_version_link_and_sample(
    alices: Client, url: str, orders: Subject, pipe: Pipe
):
    answer = alices.post(url, form(("order", "orders"), ("", "")), follow=True).content.decode()
    assert "Event types saved" in answer
    assert f'href="{reverse("console:subject", args=[orders.id])}">orders<' in answer
    assert "&quot;type&quot;: &quot;order&quot;" in answer
    assert "orders</a>, version 1" in alices.get(reverse("console:schema", args=[pipe.id, "shop"])).content.decode()


def test_header_and_single_type_are_saved(alices: Client, url: str, orders: Subject):
    shown = alices.post(url, form(("a", "orders"), place="header", where="X-Type"), follow=True).content.decode()
    assert "x-type: a" in shown
    shown = alices.post(url, form(("", "orders"), place="one", where="", based_on=1), follow=True).content.decode()
    assert "all events" in shown
    assert EventType.objects.get().name == ""
    gone = alices.post(url, form(place="one", based_on=2), follow=True).content.decode()
    assert "accepts all events again" in gone


@pytest.mark.parametrize(
    ("sent", "words", "status"),
    [
        (form(("a", "orders"), where="a..b"), "It needs a path", 422),
        (form(("a", "orders"), ("a", "orders")), "got a twice", 422),
        (form(("a", "orders"), ("b", "orders"), place="one"), "needs one row", 422),
        (form(("a", "orders"), based_on=7), "Read them again", 409),
        (form(("<script>", "none such")), "got none such", 422),
    ],
)
def test_error_is_shown_in_place_and_input_is_kept(
    alices: Client, url: str, orders: Subject, sent: dict[str, Any], words: str, status: int
):
    answer = alices.post(url, sent)
    assert answer.status_code == status
    shown = answer.content.decode()
    assert words in shown
    assert "<script>alert" not in shown
    assert f'value="{sent["name"][0].replace("<", "&lt;").replace(">", "&gt;")}"' in shown
    assert not EventType.objects.exists()


def test_rows_are_added_without_saving(alices: Client, url: str, orders: Subject):
    few = alices.get(url).content.decode().count('name="subject"')
    more = alices.post(url, form(("a", "orders")) | {"action": "more"}).content.decode()
    assert more.count('name="subject"') > few
    assert not EventType.objects.exists()


def test_viewer_reads_event_types_and_other_tenant_gets_404(
    browser_of: BrowserOf, viewer: User, charlie: User, url: str
):
    assert '<form method="post" class="card"' not in browser_of(viewer).get(url).content.decode()
    assert browser_of(viewer).post(url, form()).status_code == 403
    assert browser_of(charlie).get(url).status_code == 404
    assert browser_of(charlie).post(url, form()).status_code == 404


def test_closed_pipe_has_no_form(alices: Client, url: str, pipe: Pipe, orders: Subject):
    close_pipe(pipe=pipe)
    assert "Reopen it" in alices.get(url).content.decode()
    assert alices.post(url, form(("a", "orders"))).status_code == 409


def test_subject_page_lists_producers_and_consumers(alices: Client, orders: Subject, pipe: Pipe, alice: User):
    page = reverse("console:subject", args=[orders.id])
    assert "No source uses this subject" in alices.get(page).content.decode()
    set_event_types(source=pipe.sources.get(), type_from="", subjects={"": "orders"}, by=alice)
    deprecate_subject(subject=orders, now=timezone.now())
    shown = plain(alices.get(page).content.decode())
    assert f"{pipe.name}: shop" in shown
    assert all(one.name in shown for one in pipe.destinations.all())


def test_page_has_a_constant_query_count(
    alices: Client,
    url: str,
    pipe: Pipe,
    tenant: Tenant,
    alice: User,
    orders: Subject,
    django_assert_num_queries: DjangoAssertNumQueries,
):
    source = pipe.sources.get()
    set_event_types(source=source, type_from="field:type", subjects={"a": "orders"}, by=alice)
    with django_assert_num_queries(QUERIES):
        alices.get(url)
    subjects = {str(number): registered(tenant, alice, f"s{number}").name for number in range(5)}
    set_event_types(source=source, type_from="field:type", subjects=subjects, by=alice)
    with django_assert_num_queries(QUERIES):
        alices.get(url)


def logical(kind: str, name: str, **more: Any) -> Any:
    return {"type": {"type": kind, "logicalType": name} | more}


def test_sample_of_an_avro_schema_fits_it():
    schema = record(
        text="string",
        number="double",
        maybe={"type": ["null", "string"]},
        either={"type": ["string", "null"]},
        choice={"type": {"type": "enum", "name": "Choice", "symbols": ["A", "B"]}},
        raw={"type": {"type": "fixed", "name": "Raw", "size": 4}},
        many={"type": {"type": "array", "items": "string"}},
        named={"type": {"type": "map", "values": "long"}},
        inner={"type": record("com.shop.Inner", flag="boolean")},
        price=logical("bytes", "decimal", precision=9, scale=2),
        day=logical("int", "date"),
        at=logical("long", "timestamp-micros"),
        at_ms=logical("long", "timestamp-millis"),
        clock=logical("int", "time-millis"),
        id=logical("string", "uuid"),
        made=logical("string", "time-uuid"),
    )
    parsed = parse(SchemaType.AVRO, json.dumps(schema))
    json_to_avro(parsed, json.dumps(sample_event("AVRO", parsed.document)).encode(), 1_800_000_000_000_000)


def test_sample_of_a_json_schema_fits_it():
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "format": "uuid"},
            "at": {"type": "string", "format": "date-time"},
            "total": {"type": "number", "minimum": 5},
            "kind": {"enum": ["a", "b"]},
            "item": {"$ref": "#/$defs/item"},
            "note": {"type": ["null", "string"]},
        },
        "required": ["id", "at", "total", "kind", "item", "note"],
        "additionalProperties": False,
        "$defs": {"item": {"type": "object", "properties": {"sku": {"const": "x"}}, "required": ["sku"]}},
    }
    assert compile_schema(json.dumps(schema))(sample_event("JSON", json.dumps(schema))) is None


def wide_avro(width: int) -> dict[str, Any]:
    """Return records of which each has several fields of the next: the sample would have `width` to the 7th values."""
    made: dict[str, Any] = record("R7", x="int")
    for level in range(6, -1, -1):
        made = record(f"R{level}", f0={"type": made}, **{f"f{number}": f"R{level + 1}" for number in range(1, width)})
    return made


def wide_json(width: int) -> dict[str, Any]:
    names = [f"f{number}" for number in range(width)]
    levels = {
        f"R{level}": {
            "type": "object",
            "required": names,
            "properties": dict.fromkeys(names, {"$ref": f"#/$defs/R{level + 1}"} if level < 7 else {"type": "integer"}),
        }
        for level in range(8)
    }
    return {"$ref": "#/$defs/R0", "$defs": levels}


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        ("AVRO", wide_avro(20)),
        ("AVRO", record("R", a={"type": {"type": "fixed", "name": "F", "size": 1_000_000}})),
        ("JSON", wide_json(20)),
        ("JSON", {"const": "x" * 100_000}),
    ],
)
def test_sample_that_would_be_very_large_is_refused(kind: str, schema: dict[str, Any]):
    with pytest.raises(SampleTooLargeError):
        sample_event(kind, json.dumps(schema))


def test_pages_do_without_a_sample_that_would_be_very_large(
    alices: Client, url: str, tenant: Tenant, alice: User, pipe: Pipe
):
    draft = SchemaDraft(SchemaType.AVRO, json.dumps(wide_avro(20)))
    subject = register_version(tenant=tenant, subject="wide", draft=draft, author=alice)[0].subject
    set_event_types(source=pipe.sources.get(), type_from="", subjects={"": "wide"}, by=alice)
    assert "too large for an example" in alices.get(url).text
    page = alices.get(reverse("console:subject", args=[subject.id])).text
    assert "Fields of version 1" in page
    assert "Example in JSON" not in page
