"""Rejected events of a pipe: list and page by kind, samples under masks, and acceptance by a new version."""

import json
from datetime import datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import DjangoAssertNumQueries
from rest_framework.test import APIClient

from controlplane.observer.rejections import add_rejections
from dataplane.ledger.rejections import KAFKA, OTHER, RejectionReport, RejectionSample
from dataplane.schemas.types import Compatibility, SchemaType
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import ApiKey, Pipe, Rejection, Subject, SubjectVersion, Tenant, User
from mgmt.registry.drafts import SchemaDraft
from mgmt.services import create_api_key, publish_revision, register_version, set_event_types, set_subject_compatibility
from tests.db.console.truth import BrowserOf, plain

pytestmark = pytest.mark.django_db
LIST_QUERIES, PAGE_QUERIES = 15, 21
ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "type", "type": "string"}, {"name": "total", "type": "double"}],
}
EVENT = {"type": "order", "total": "12.50", "email": "bob@example.com"}
DETAIL = "/total: needs double, got a text"


@pytest.fixture
def key(pipe: Pipe) -> ApiKey:
    return create_api_key(source=pipe.sources.get(), label="checkout")[0]


@pytest.fixture
def orders(pipe: Pipe, tenant: Tenant, alice: User) -> Subject:
    draft = SchemaDraft(SchemaType.AVRO, json.dumps(ORDER))
    version, _ = register_version(tenant=tenant, subject="orders", draft=draft, author=alice)
    set_event_types(source=pipe.sources.get(), type_from="field:type", subjects={"order": "orders"}, by=alice)
    return version.subject


def reject(pipe: Pipe, now: datetime, sender: str = "x", *, ago: int = 0, events: int = 3, **changed: str) -> Rejection:
    named = {"event_type": "order", "code": "schema", "pointer": "/total", "detail": DETAIL, **changed}
    detail, body = named.pop("detail"), named.pop("body", json.dumps(EVENT))
    sample = RejectionSample(int(now.timestamp()) * 1_000_000, 70, body)
    add_rejections(
        [RejectionReport(pipe.id, "shop", **named, sender=sender, minute=bucket_at(now) - ago, events=events,
                         detail=detail, samples=[sample])]
    )  # fmt: skip
    return Rejection.objects.latest("pk")


def url_of(name: str, row: Rejection) -> str:
    return reverse(f"console:{name}", args=[row.pipe_id, row.pk])


def test_list_has_type_reason_place_sender_and_count_in_the_chosen_range(
    alices: Client, pipe: Pipe, key: ApiKey, now: datetime
):
    reject(pipe, now, key.digest[:16])
    reject(pipe, now, key.digest[:16], ago=120, events=40)
    reject(pipe, now, "gone", pointer="", code="json-invalid", event_type="", detail="", events=5)
    reject(pipe, now, KAFKA, events=2)
    reject(pipe, now, OTHER, event_type=OTHER, pointer="", events=1)
    url = reverse("console:rejections", args=[pipe.id])
    shown = plain(alices.get(url).content.decode())
    assert f"Does not fit the schema {DETAIL} /total order shop checkout ({key.prefix}...) 3 " in shown
    assert "Is not valid JSON whole event - shop an API key that no longer exists 5 " in shown
    assert "records of the Kafka topic 2 " in shown
    assert f"{DETAIL} several further types shop several senders 1 " in shown
    assert shown.index("valid JSON") < shown.index("does not fit" if "does not fit" in shown else "Does not fit")
    assert f"checkout ({key.prefix}...) 43 " in plain(alices.get(url, {"range": "6h"}).content.decode())


def test_list_of_a_pipe_without_rejections_says_so(alices: Client, pipe: Pipe, now: datetime):
    url = reverse("console:rejections", args=[pipe.id])
    assert "No rejected events." in plain(alices.get(url).content.decode())
    reject(pipe, now, ago=100)
    assert "In the last 1h every event passed" in plain(alices.get(url).content.decode())
    part = alices.get(f"{url}?part=kinds&range=6h", headers={"HX-Request": "true"}).content.decode()
    assert DETAIL in part
    assert "<html" not in part


def test_list_is_exported(alices: Client, pipe: Pipe, now: datetime):
    row = reject(pipe, now, KAFKA)
    answer: Any = alices.get(reverse("console:rejections", args=[pipe.id]), {"format": "jsonl"})
    (line,) = [json.loads(line) for line in b"".join(answer).splitlines()]
    assert (line["id"], line["events"], line["sender"]) == (row.pk, 3, "records of the Kafka topic")


def test_page_of_a_kind_shows_samples_and_what_to_do(alices: Client, pipe: Pipe, orders: Subject, now: datetime):
    row = reject(pipe, now)
    page = alices.get(url_of("rejection", row)).content.decode()
    shown = plain(page)
    assert "3 events in the last 1h" in shown
    assert "bob@example.com" in shown
    assert "Correct the sender." in shown
    assert f'href="{url_of("accept_rejected", row)}">Accept with a new version<' in page
    assert "orders version 1" in shown
    of_kafka = plain(alices.get(url_of("rejection", reject(pipe, now, KAFKA))).content.decode())
    assert "run them again once they fit" in of_kafka


@pytest.mark.parametrize("body", [json.dumps(EVENT), '{"email": "bob@example.com"', json.dumps([[EVENT]])])
def test_samples_do_not_show_what_the_pipe_masks_now(
    alices: Client, api: APIClient, pipe: Pipe, alice: User, now: datetime, body: str
):
    row = reject(pipe, now, body=body)
    assert "bob@" in alices.get(url_of("rejection", row)).content.decode()
    spec = pipe.revisions.get().spec | {"normalize": [{"op": "mask", "path": "email"}]}
    publish_revision(pipe=pipe, spec=spec, based_on=1, author=alice)
    page = alices.get(url_of("rejection", row)).content.decode()
    assert "bob@" not in page
    assert "without the values that the pipe masks" in page
    assert "bob@" not in api.get(f"/api/v1/pipes/{pipe.id}/rejections/{row.pk}/").content.decode()


def test_api_has_what_the_pages_show(api: APIClient, pipe: Pipe, orders: Subject, key: ApiKey, now: datetime):
    row = reject(pipe, now, key.digest[:16])
    url = f"/api/v1/pipes/{pipe.id}/rejections/"
    (listed,) = api.get(url).json()["results"]
    assert listed == {
        "id": row.pk, "source": "shop", "event_type": "order", "code": "schema", "pointer": "/total", "detail": DETAIL,
        "sender": f"checkout ({key.prefix}...)", "stored": False, "events": 3,
        "first_at": listed["first_at"], "last_at": listed["last_at"],
    }  # fmt: skip
    found = api.get(f"{url}{row.pk}/").json()
    assert {name: found[name] for name in listed} == listed
    assert [json.loads(one["body"]) for one in found["samples"]] == [EVENT]
    assert (found["subject"], found["subject_id"], found["newest_version"]) == ("orders", orders.id, 1)
    assert found["proposal"]["schema"]["fields"][1] == {"name": "total", "type": ["double", "string"]}
    assert found["proposal"]["words"] == "total may also be string."
    assert api.get(f"{url}?since={now.isoformat().replace('+', '%2B')}").status_code == 400
    other = reject(pipe, now, event_type="unknown", code="event-type-unknown")
    assert api.get(f"{url}{other.pk}/").json()["proposal"] is None


def test_another_tenant_sees_nothing(pipe: Pipe, charlie: User, browser_of: BrowserOf, now: datetime):
    row, browser = reject(pipe, now), browser_of(charlie)
    for path in (
        url_of("rejection", row),
        url_of("accept_rejected", row),
        f"/api/v1/pipes/{pipe.id}/rejections/{row.pk}/",
    ):
        assert browser.get(path).status_code == 404


def test_proposed_version_is_shown_with_its_check_and_registered(
    alices: Client, pipe: Pipe, orders: Subject, now: datetime
):
    row = reject(pipe, now)
    page = alices.get(url_of("accept_rejected", row))
    shown = plain(page.content.decode())
    assert "Proposed change to version 1: total may also be string." in shown
    assert "Compatible at level BACKWARD. Nothing was registered yet." in shown
    assert SubjectVersion.objects.count() == 1
    text = page.context["text"]
    done = alices.post(url_of("accept_rejected", row), {"schema": text, "action": "register"}, follow=True)
    assert "Version 2 of orders registered." in done.content.decode()
    assert SubjectVersion.objects.get(number=2).schema.parsed["fields"][1]["type"] == ["double", "string"]
    again = alices.post(url_of("accept_rejected", row), {"schema": text, "action": "register"}, follow=True)
    assert "Equal to version 2" in again.content.decode()


def test_incompatible_version_is_not_registered(
    alices: Client, pipe: Pipe, tenant: Tenant, orders: Subject, now: datetime
):
    row = reject(pipe, now)
    set_subject_compatibility(tenant=tenant, subject="orders", level=Compatibility.FULL)
    page = alices.get(url_of("accept_rejected", row))
    shown = plain(page.content.decode())
    assert "Incompatible at level FULL" in shown
    assert "total" in shown
    for action in ("check", "register"):
        sent = {"schema": page.context["text"], "action": action}
        refused = alices.post(url_of("accept_rejected", row), sent)
        assert "Incompatible at level FULL" in plain(refused.content.decode())
    assert refused.status_code == 409
    assert SubjectVersion.objects.count() == 1


def test_form_begins_with_the_newest_version_if_no_change_can_be_derived(
    alices: Client, pipe: Pipe, orders: Subject, now: datetime
):
    row = reject(pipe, now, detail="/total: needs a finite number")
    page = alices.get(url_of("accept_rejected", row))
    assert json.loads(page.context["text"]) == ORDER
    assert "No change can be derived" in page.content.decode()
    wrong = alices.post(url_of("accept_rejected", row), {"schema": "{", "action": "register"})
    assert (wrong.status_code, "needs JSON" in wrong.content.decode()) == (422, True)


def test_events_without_a_subject_lead_to_the_settings_of_their_source(alices: Client, pipe: Pipe, now: datetime):
    row = reject(pipe, now)
    page = alices.get(url_of("rejection", row)).content.decode()
    assert f'href="{reverse("console:schema", args=[pipe.id, "shop"])}"' in page
    assert "Accept with a new version" not in page
    assert alices.get(url_of("accept_rejected", row)).headers["location"] == url_of("rejection", row)


def test_viewer_reads_and_may_not_accept(
    browser_of: BrowserOf, viewer: User, pipe: Pipe, orders: Subject, now: datetime
):
    row, browser = reject(pipe, now), browser_of(viewer)
    assert "An editor can accept these events" in browser.get(url_of("rejection", row)).content.decode()
    assert browser.get(url_of("accept_rejected", row)).status_code == 403


def test_query_count_does_not_grow_with_the_kinds(
    alices: Client, pipe: Pipe, orders: Subject, now: datetime, django_assert_num_queries: DjangoAssertNumQueries
):
    row = reject(pipe, now)
    url = reverse("console:rejections", args=[pipe.id])
    alices.get(url)
    with django_assert_num_queries(LIST_QUERIES):
        alices.get(url)
    for number in range(5):
        reject(pipe, now, pointer=f"/f{number}x")
    with django_assert_num_queries(LIST_QUERIES):
        alices.get(url)
    with django_assert_num_queries(PAGE_QUERIES):
        alices.get(url_of("rejection", row))
