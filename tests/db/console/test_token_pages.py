"""API tokens in the console: created and shown once, listed with their state, revoked; and service accounts."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries
from rest_framework.test import APIClient

from mgmt.models import ApiToken, Membership, Pipe, ServiceAccount, Tenant, User
from mgmt.services import create_service_account, create_token
from mgmt.tokens.services import tokens as token_services
from tests.db.console.truth import BrowserOf, plain

pytestmark = pytest.mark.django_db
TOKENS = "/tokens/"
FORM = {"name": "CI", "scope": "publish", "pipe": "", "days": "90"}


def make(user: User, tenant: Tenant, name: str = "CI", days: int | None = 90) -> ApiToken:
    token, _ = create_token(tenant=tenant, user=user, by=user, name=name, scope="read", days=days, now=timezone.now())
    return token


def test_created_token_is_shown_once_with_a_curl_command_that_works(alices: Client, alice: User, pipe: Pipe):
    page = alices.post(TOKENS, FORM | {"pipe": pipe.id}).text
    token = ApiToken.objects.get()
    (text,) = {word for word in plain(page).split() if word.startswith("pst_") and "…" not in word and '"' not in word}
    assert f'"Authorization: Bearer {text}"' in page.replace("&quot;", '"')
    assert f"/api/v1/pipes/{pipe.id}/" in page
    client = APIClient()
    assert client.get(f"/api/v1/pipes/{pipe.id}/", HTTP_AUTHORIZATION=f"Bearer {text}").status_code == 200
    assert (token.scope, token.pipe, token.created_by) == ("publish", pipe, alice)
    assert token.expires_at is not None
    assert timedelta(days=89) < token.expires_at - timezone.now() <= timedelta(days=90)
    assert text not in alices.get(TOKENS).text


def test_list_marks_tokens_that_expire_soon_or_have_expired(alices: Client, alice: User, tenant: Tenant):
    make(alice, tenant, "long")
    make(alice, tenant, "short", days=7)
    make(alice, tenant, "endless", days=None)
    old = make(alice, tenant, "old")
    ApiToken.objects.filter(id=old.id).update(expires_at=timezone.now(), last_used_at=timezone.now())
    rows = {row.split()[0]: row for row in plain(alices.get(TOKENS).text.split("<tbody>")[1]).split("permanently")}
    assert "soon" in rows["short"]
    assert "expired" in rows["old"]
    assert not any(word in rows["long"] for word in ("soon", "expired"))
    assert rows["endless"].count("never") == 2  # used and expires


def test_member_sees_and_revokes_their_own_tokens_and_an_owner_all(
    browser_of: BrowserOf, alices: Client, alice: User, viewer: User, tenant: Tenant
):
    own, others = make(viewer, tenant, "vera's"), make(alice, tenant, "alice's")
    viewers = browser_of(viewer)
    page = viewers.get(TOKENS).text
    assert "vera&#x27;s" in page
    assert "alice&#x27;s" not in page
    assert viewers.post(f"{TOKENS}{others.id}/revoke/").status_code == 404
    assert viewers.post(f"{TOKENS}{own.id}/revoke/").status_code == 302
    assert "is revoked" in viewers.get(TOKENS).text
    assert "vera&#x27;s" not in viewers.get(TOKENS).text
    make(viewer, tenant, "second")
    assert "second" in alices.get(TOKENS).text
    assert alices.post(f"{TOKENS}{ApiToken.objects.get(name='second').id}/revoke/").status_code == 302
    assert ApiToken.objects.get(name="second").revoked_by == alice


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"scope": "operate"}, "needs at most read"),
        ({"name": ""}, "The name needs 1 to 80 characters"),
        ({"days": "never"}, "only an owner"),
        ({"days": "366"}, "needs 1 to 365 days"),
        ({"scope": "x"}, "needs one of read"),
    ],
    ids=str,
)
def test_refused_token_is_explained_and_none_is_created(
    browser_of: BrowserOf, viewer: User, change: dict[str, str], shown: str
):
    answer = browser_of(viewer).post(TOKENS, FORM | {"scope": "read"} | change)
    assert answer.status_code == 422
    assert shown in plain(answer.text)
    assert not ApiToken.objects.exists()


def test_viewer_creates_a_token_of_their_role_and_is_offered_no_other_scope(browser_of: BrowserOf, viewer: User):
    browser = browser_of(viewer)
    page = browser.get(TOKENS).text
    assert 'value="read"' in page
    assert not any(f'value="{one}"' in page for one in ("operate", "publish", "admin", "never"))
    assert browser.post(TOKENS, FORM | {"scope": "read"}).status_code == 200


@pytest.mark.parametrize("limit", ["MAX_TOKENS", "MAX_OF_USER"])
def test_number_of_tokens_is_limited(
    alices: Client, tenant: Tenant, alice: User, monkeypatch: pytest.MonkeyPatch, limit: str
):
    monkeypatch.setattr(token_services, limit, 1)
    make(alice, tenant)
    answer = alices.post(TOKENS, FORM)
    assert answer.status_code == 409
    assert "at most 1 tokens" in answer.text


def test_owner_manages_service_accounts_and_their_tokens(alices: Client, tenant: Tenant):
    assert alices.post(f"{TOKENS}accounts/", {"name": "deploy", "role": "editor"}).status_code == 302
    account = ServiceAccount.objects.get()
    answer = alices.post(TOKENS, FORM | {"account": account.id})
    assert answer.status_code == 200
    assert ApiToken.objects.get().user == account.user
    assert "deploy service account" in plain(answer.text)
    alices.post(f"{TOKENS}accounts/{account.id}/change/", {"role": "viewer"})
    assert account.user.memberships.get().role == Membership.Role.VIEWER
    alices.post(f"{TOKENS}accounts/{account.id}/change/", {"active": "no"})
    account.user.refresh_from_db()
    assert not account.user.is_active
    assert "disabled" in alices.get(TOKENS).text
    alices.post(f"{TOKENS}accounts/{account.id}/change/", {"active": "yes"})
    alices.post(f"{TOKENS}accounts/{account.id}/remove/")
    assert ApiToken.objects.get().revoked_at is not None
    assert "deploy" not in plain(alices.get(TOKENS).text.split("accounts-title")[2])


def test_only_owners_manage_service_accounts(
    browser_of: BrowserOf, bob: User, charlie: User, alice: User, tenant: Tenant
):
    account = create_service_account(tenant=tenant, name="deploy", role="viewer", by=alice, now=timezone.now())
    editors, strangers = browser_of(bob), browser_of(charlie)
    assert editors.post(f"{TOKENS}accounts/", {"name": "x", "role": "viewer"}).status_code == 403
    for action in ("change", "remove"):
        assert editors.post(f"{TOKENS}accounts/{account.id}/{action}/").status_code == 403
        assert strangers.post(f"{TOKENS}accounts/{account.id}/{action}/").status_code == 404
    assert editors.post(TOKENS, FORM | {"account": account.id}).status_code == 403
    assert strangers.post(TOKENS, FORM | {"account": account.id}).status_code == 404
    assert "Remove" not in editors.get(TOKENS).text


@pytest.mark.parametrize("name", ["", "Deploy", "-a", "a b", "a" * 41, "deploy"])
def test_name_of_a_service_account_is_checked(alices: Client, alice: User, tenant: Tenant, name: str):
    create_service_account(tenant=tenant, name="deploy", role="viewer", by=alice, now=timezone.now())
    page = alices.post(f"{TOKENS}accounts/", {"name": name, "role": "viewer"}, follow=True).text
    assert "Choose another name" in page or "needs 1 to 40 characters" in page
    assert ServiceAccount.objects.count() == 1


def test_list_has_a_constant_query_count(
    alices: Client, alice: User, tenant: Tenant, django_assert_num_queries: DjangoAssertNumQueries
):
    for number in range(2):
        make(alice, tenant, f"t{number}")
    alices.get(TOKENS)
    with django_assert_num_queries(12):
        alices.get(TOKENS)
    for number in range(5):
        account = create_service_account(tenant=tenant, name=f"a{number}", role="viewer", by=alice, now=timezone.now())
        make(account.user, tenant, f"more {number}")
    with django_assert_num_queries(12):
        alices.get(TOKENS)
