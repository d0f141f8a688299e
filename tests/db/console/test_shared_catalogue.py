"""Shared event catalogue: links that owners create and revoke, and the pages that they open without an account."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from mgmt.models import CatalogueLink, Pipe, Subject, Tenant, User
from mgmt.registry import catalogue_links, pages, shared_pages
from mgmt.services import (
    LimitReachedError,
    create_catalogue_link,
    register_version,
    revoke_catalogue_link,
    set_event_types,
)
from mgmt.tenancy.secrets import link_token_digest
from tests.db.cast import MakeClient
from tests.db.console.test_registry_pages import draft
from tests.db.console.truth import BrowserOf, plain
from tests.db.mgmt.registry_schemas import V1, V2

pytestmark = pytest.mark.django_db
LINKS = "/schemas/links/"


@pytest.fixture
def orders(tenant: Tenant, alice: User) -> Subject:
    for schema in (V1, V2):
        made, _ = register_version(tenant=tenant, subject="orders-value", draft=draft(schema), author=alice)
    return made.subject


@pytest.fixture
def token(tenant: Tenant, alice: User) -> str:
    return create_catalogue_link(tenant=tenant, author=alice, label="Partner", days=7, now=timezone.now())[1]


def test_owner_creates_a_link_that_opens_without_an_account(alices: Client, orders: Subject, client: Client):
    answer = alices.post(LINKS, {"label": "Partner", "days": "7"})
    assert answer.status_code == 200
    link = CatalogueLink.objects.get()
    (url,) = [word for word in plain(answer.text).split() if "/catalogue/" in word]
    path = url.removeprefix("http://").partition("/")[2]
    shown = client.get(f"/{path}")
    assert "orders-value Avro 2 alice" in plain(shown.text)
    assert url.split("/")[-2] not in alices.get(LINKS).text, "the address is shown once"
    assert link.digest == link_token_digest(url.split("/")[-2])
    assert timedelta(days=6) < link.expires_at - timezone.now() < timedelta(days=8)


def test_shared_pages_ask_for_no_listing_and_send_no_referrer(client: Client, orders: Subject, token: str):
    for name, arguments in (("shared_catalogue", [token]), ("shared_subject", [token, orders.id])):
        answer = client.get(reverse(f"console:{name}", args=arguments))
        assert answer.status_code == 200
        headers = ("X-Robots-Tag", "Referrer-Policy", "Cache-Control")
        assert [answer[header] for header in headers] == ["noindex", "no-referrer", "no-store"]


def test_shared_subject_shows_fields_changes_and_text_and_nothing_of_the_tenant_besides(
    client: Client, orders: Subject, token: str, pipe: Pipe, alice: User
):
    set_event_types(source=pipe.sources.get(), type_from="", subjects={"": "orders-value"}, by=alice)
    Pipe.objects.update(name="till-7")
    url = reverse("console:shared_subject", args=[token, orders.id])
    shown = plain(client.get(f"{url}?since=1&version=2").text)
    assert "Changes from version 1 to 2" in shown
    assert "Added note" in shown
    assert "Schema of version 1" in plain(client.get(f"{url}?version=1").text)
    for secret in ("till-7", pipe.id, "Produced by", "by alice", "curl"):
        assert secret not in shown


def test_version_beyond_the_listed_ones_is_shown_and_compared(
    client: Client, alices: Client, orders: Subject, token: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(shared_pages, "MOST_VERSIONS", 1)
    monkeypatch.setattr(pages, "MOST_VERSIONS", 1)
    shared = client, reverse("console:shared_subject", args=[token, orders.id])
    for browser, url in (shared, (alices, reverse("console:subject", args=[orders.id]))):
        assert "Version 1" not in plain(browser.get(url).text)
        assert "Schema of version 1" in plain(browser.get(f"{url}?version=1").text)
        assert "Changes from version 1 to 2" in plain(browser.get(f"{url}?since=1").text)
        assert "Schema of version 2" in plain(browser.get(f"{url}?version=9").text)


def test_unknown_revoked_and_expired_links_and_foreign_subjects_are_not_found(
    client: Client, orders: Subject, token: str, charlie: User
):
    other = register_version(tenant=charlie.tenants.get(), subject="secret", draft=draft(V1), author=charlie)[0].subject
    assert client.get(reverse("console:shared_subject", args=[token, other.id])).status_code == 404
    assert client.get(reverse("console:shared_subject", args=[token, "none\x00"])).status_code == 404
    assert client.get("/catalogue/none/").status_code == 404
    page, link = reverse("console:shared_catalogue", args=[token]), CatalogueLink.objects.get()
    CatalogueLink.objects.update(expires_at=timezone.now())
    assert client.get(page).status_code == 404
    CatalogueLink.objects.update(expires_at=timezone.now() + timedelta(days=1))
    assert client.get(page).status_code == 200
    revoke_catalogue_link(link=link, now=timezone.now())
    refused = client.get(page)
    assert (refused.status_code, refused["X-Robots-Tag"]) == (404, "noindex")
    assert "Ask the owner of the catalogue" in refused.text


def test_owner_revokes_a_link_and_the_first_time_is_kept(alices: Client, token: str, client: Client):
    link = CatalogueLink.objects.get()
    url = reverse("console:revoke_catalogue_link", args=[link.id])
    assert f'action="{url}"' in alices.get(LINKS).text
    shown = alices.post(url, follow=True)
    assert "The link for Partner no longer opens the catalogue." in plain(shown.text)
    assert "No link is open." in plain(shown.text)
    link.refresh_from_db()
    alices.post(url)
    assert CatalogueLink.objects.get().revoked_at == link.revoked_at
    assert client.get(reverse("console:shared_catalogue", args=[token])).status_code == 404


def test_only_owners_create_and_revoke_links(
    browser_of: BrowserOf, bob: User, charlie: User, token: str, client: Client
):
    link, bobs, charlies = CatalogueLink.objects.get(), browser_of(bob), browser_of(charlie)
    assert "Owners can create and revoke links." in plain(bobs.get(LINKS).text)
    revoke = reverse("console:revoke_catalogue_link", args=[link.id])
    assert bobs.post(LINKS, {"label": "x", "days": "1"}).status_code == 403
    assert (bobs.post(revoke).status_code, charlies.post(revoke).status_code) == (403, 404)
    assert link.id not in charlies.get(LINKS).text
    assert client.get(LINKS).status_code == 302
    assert CatalogueLink.objects.get().revoked_at is None


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"label": "", "days": "7"}, "The name needs 1 to"),
        ({"label": "a\nb", "days": "7"}, "The name needs printable characters"),
        ({"label": "x", "days": "0"}, "The time needs 1 to 365 days"),
        ({"label": "x", "days": "366"}, "The time needs 1 to 365 days"),
        ({"label": "x", "days": "a week"}, "The time needs 1 to 365 days"),
    ],
)
def test_invalid_link_is_refused_at_its_field_and_input_is_kept(
    alices: Client, tenant: Tenant, fields: dict[str, Any], words: str
):
    answer = alices.post(LINKS, fields)
    assert answer.status_code == 422
    assert words in plain(answer.text)
    assert f'value="{fields["days"]}"' in answer.text
    assert not CatalogueLink.objects.exists()


def test_tenant_has_a_limited_number_of_open_links(
    alices: Client, tenant: Tenant, alice: User, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(catalogue_links, "MAX_LINKS", 1)
    now = timezone.now()
    link, _ = create_catalogue_link(tenant=tenant, author=alice, label="one", days=1, now=now)
    with pytest.raises(LimitReachedError):
        create_catalogue_link(tenant=tenant, author=alice, label="two", days=1, now=now)
    assert "Revoke one first." in plain(alices.post(LINKS, {"label": "two", "days": "1"}).text)
    revoke_catalogue_link(link=link, now=now)
    assert create_catalogue_link(tenant=tenant, author=alice, label="two", days=1, now=now)


def test_requests_of_one_address_are_limited(client: Client, token: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shared_pages, "VIEWS", shared_pages.VIEWS._replace(most=1))
    page = reverse("console:shared_catalogue", args=[token])
    first, second = client.get(page), client.get(page)
    assert (first.status_code, second.status_code, second["Retry-After"]) == (200, 429, "300")


def test_api_creates_lists_and_revokes_links(alice: User, tenant: Tenant, client_of: MakeClient, client: Client):
    api, path = client_of(alice), f"/api/v1/tenants/{tenant.id}/schemas/links/"
    made = api.post(path, {"label": "Partner", "days": 3}, format="json")
    assert (made.status_code, made["Cache-Control"]) == (201, "no-store")
    shared = "/" + made.json()["url"].partition("//")[2].partition("/")[2]
    assert client.get(shared).status_code == 200
    (listed,) = api.get(path).json()
    assert (listed["label"], listed["author"], "url" in listed) == ("Partner", "alice", False)
    assert api.delete(f"{path}{listed['id']}/").status_code == 204
    assert (api.get(path).json(), client.get(shared).status_code) == ([], 404)
