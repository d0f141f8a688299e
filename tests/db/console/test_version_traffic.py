"""Traffic of schema versions on the pages of the event catalogue and in the API."""

import json
import time

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from dataplane.schemas.types import SchemaType
from mgmt.models import Pipe, Subject, Tenant, User, VersionHour
from mgmt.registry.drafts import SchemaDraft
from mgmt.services import create_pipe, register_version, set_event_types
from tests.db.cast import MakeClient, MakeSpec
from tests.db.console.truth import plain
from tests.db.mgmt.registry_schemas import V1, V2

pytestmark = pytest.mark.django_db


@pytest.fixture
def hour() -> int:
    return int(time.time()) // 3_600


@pytest.fixture
def orders(tenant: Tenant, alice: User, pipe: Pipe, a_spec: MakeSpec, hour: int) -> Subject:
    """Subject with two versions, produced by two pipes, with events of the last hours and days."""
    for schema in (V1, V2):
        draft = SchemaDraft(SchemaType.AVRO, json.dumps(schema))
        made, _ = register_version(tenant=tenant, subject="orders", draft=draft, author=alice)
    other = create_pipe(tenant=tenant, name="till", spec=a_spec(), author=alice)
    for one in (pipe, other):
        set_event_types(source=one.sources.get(), type_from="", subjects={"": "orders"}, by=alice)
    first, second = made.subject.versions.order_by("number")
    for version, source, ago_h, accepted, rejected in (
        (first, pipe, 0, 900, 100),
        (first, pipe, 23, 1_000, 0),
        (first, pipe, 24, 50_000, 7),
        (second, pipe, 1, 30, 0),
        (second, other, 0, 0, 3),
    ):
        VersionHour.objects.create(
            source=source.sources.get(), version=version, hour=hour - ago_h, accepted=accepted, rejected=rejected
        )
    return made.subject


def test_subject_shows_the_events_and_rejections_of_each_version_and_source(
    alices: Client, orders: Subject, pipe: Pipe
):
    page = alices.get(f"/schemas/{orders.id}/").text
    versions = plain(page.split('id="versions-title"')[1].split("</table>")[0])
    assert "Version 2 " in versions.split("Version 1 ")[0]
    assert " 30 3 rejected (9.1%) " in versions.split("Version 1 ")[0]
    assert " 1900 100 rejected (5.0%) " in versions.split("Version 1 ")[1]
    producers = plain(page.split('id="producers-title"')[1].split("</table>")[0]) + " "
    assert "orders: shop all events crm 1930 100 rejected (4.9%) " in producers
    assert "till: shop all events crm 0 3 rejected (100.0%) " in producers
    assert f'href="{reverse("console:rejections", args=[pipe.id])}?range=24h">100 rejected (4.9\u202f%)<' in page
    listed = plain(alices.get("/schemas/").text.split('aria-label="Subjects"')[1].split("</table>")[0])
    assert " 2 1930 103 rejected (5.1%) " in listed


def test_subject_without_events_shows_zeros(alices: Client, orders: Subject):
    VersionHour.objects.all().delete()
    assert " 0 Deprecate" in plain(alices.get(f"/schemas/{orders.id}/").text)


def test_api_returns_the_traffic_of_each_range(api: APIClient, orders: Subject, pipe: Pipe):
    url = f"/api/v1/schemas/{orders.id}/traffic/"
    till = Pipe.objects.get(name="till")
    found = api.get(url).json()["results"]
    assert [(one["version"], one["pipe"], one["source"], one["accepted"], one["rejected"]) for one in found] == [
        (2, pipe.id, "shop", 30, 0),
        (2, till.id, "shop", 0, 3),
        (1, pipe.id, "shop", 1_900, 100),
    ]
    assert [one["rejected_share"] for one in found] == [0.0, 1.0, 0.05]
    assert api.get(url, {"range": "24h"}).json()["results"] == found
    accepted = {
        name: sum(one["accepted"] for one in api.get(url, {"range": name}).json()["results"]) for name in ("1h", "7d")
    }
    assert accepted == {"1h": 900, "7d": 51_930}
    refused = api.get(url, {"range": "1y"})
    assert (refused.status_code, refused.json()["code"]) == (400, "parameter-invalid")


def test_traffic_of_another_tenant_is_not_found(client_of: MakeClient, charlie: User, orders: Subject):
    assert client_of(charlie).get(f"/api/v1/schemas/{orders.id}/traffic/").status_code == 404
