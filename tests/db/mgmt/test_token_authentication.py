"""Requests with an API token: whom it authenticates, what it reaches, and how it ends."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from mgmt.models import ApiToken, Membership, Pipe, Tenant, User
from mgmt.services import (
    change_service_account,
    create_pipe,
    create_service_account,
    create_token,
    make_sign_in_link,
    remove_service_account,
    revoke_token,
    revoke_tokens_of,
    user_for_sign_in_token,
)
from mgmt.tenancy.authentication import LimitedBackend
from mgmt.tenancy.services.rate_limits import TryLimit
from tests.db.cast import MakeSpec

Role = Membership.Role
ME = "/api/v1/me/"


def bearer(text: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    return client


def token_of(user: User, tenant: Tenant, **options: Any) -> tuple[ApiToken, str]:
    chosen: dict[str, Any] = {"scope": "read", "days": 90, "name": "CI", **options}
    return create_token(tenant=tenant, user=user, by=user, now=timezone.now(), **chosen)


def refusal(client: APIClient, path: str = ME) -> tuple[int, str]:
    answer = client.get(path)
    return answer.status_code, answer.json()["code"]


def test_token_authenticates_its_user_and_only_its_digest_is_stored(alice: User, tenant: Tenant):
    token, text = token_of(alice, tenant, scope="publish")
    me = bearer(text).get(ME).json()
    assert me["username"] == "alice"
    assert me["tenants"] == [{"id": tenant.id, "name": "Alice's", "role": "editor"}]
    assert (me["token"]["id"], me["token"]["scope"], me["token"]["pipe"]) == (token.id, "publish", None)
    assert text.startswith(token.prefix)
    assert text not in str(ApiToken.objects.values().get())


def test_scheme_is_case_insensitive_and_needs_no_csrf_token(alice: User, pipe: Pipe):
    _, text = token_of(alice, pipe.tenant, scope="operate")
    client = APIClient(enforce_csrf_checks=True)
    answer = client.post(f"/api/v1/pipes/{pipe.id}/pause/", HTTP_AUTHORIZATION=f"bearer {text}")
    assert answer.status_code == 200


@pytest.mark.parametrize("text", ["", "pst_", "pst_" + "0" * 38, "psk_" + "0" * 38, "x y", "\xff", "a" * 5_000])
def test_unknown_token_is_401_with_a_challenge(db: None, text: str):
    answer = bearer(text).get(ME)
    assert (answer.status_code, answer.json()["code"]) == (401, "token-invalid")
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_expired_and_revoked_tokens_are_401_with_codes_of_their_own(alice: User, tenant: Tenant):
    expired, expired_text = token_of(alice, tenant)
    ApiToken.objects.filter(id=expired.id).update(expires_at=timezone.now())
    revoked, revoked_text = token_of(alice, tenant)
    assert revoke_token(token=revoked, by=alice, now=timezone.now())
    assert not revoke_token(token=revoked, by=alice, now=timezone.now())
    assert refusal(bearer(expired_text)) == (401, "token-expired")
    assert refusal(bearer(revoked_text)) == (401, "token-revoked")


def test_token_of_an_inactive_user_or_of_no_member_is_401(alice: User, bob: User, tenant: Tenant):
    (_, bobs), (_, alices) = token_of(bob, tenant), token_of(alice, tenant)
    Membership.objects.filter(user=bob).delete()
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert refusal(bearer(bobs)) == refusal(bearer(alices)) == (401, "token-invalid")


def test_token_never_exceeds_the_present_role_of_its_user(alice: User, pipe: Pipe):
    _, text = token_of(alice, pipe.tenant, scope="admin")
    Membership.objects.filter(user=alice).update(role=Role.VIEWER)
    client = bearer(text)
    answer = client.post(f"/api/v1/pipes/{pipe.id}/pause/")
    assert (answer.status_code, answer.json()["code"]) == (403, "scope-too-low")
    assert client.get("/api/v1/pipes/").json()["results"][0]["my_role"] == "viewer"
    assert client.get(ME).json()["tenants"][0]["role"] == "viewer"


def test_failed_attempts_count_against_the_address_and_a_valid_token_passes_over_the_limit(
    alice: User, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mgmt.web.authentication.PER_ADDRESS", TryLimit("x", 2, timedelta(minutes=5)))
    _, text = token_of(alice, tenant)
    assert [bearer("pst_0").get(ME).status_code for _ in range(3)] == [401, 401, 429]
    assert "Retry-After" in bearer("pst_0").get(ME).headers
    assert bearer(text).get(ME).status_code == 200


def test_failed_token_counts_with_wrong_passwords_of_its_address(
    alice: User, monkeypatch: pytest.MonkeyPatch, client: Client
):
    limit = TryLimit("sign-in: address", 1, timedelta(minutes=5))
    monkeypatch.setattr("mgmt.web.authentication.PER_ADDRESS", limit)
    monkeypatch.setattr("mgmt.tenancy.services.sign_in_limits.PER_ADDRESS", limit)
    assert bearer("pst_0").get(ME).status_code == 401
    assert client.post("/sign-in/", {"username": "alice", "password": "alice's long password"}).status_code == 429


def test_each_token_has_a_request_count_of_its_own(alice: User, tenant: Tenant, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mgmt.web.throttling.PER_TOKEN", TryLimit("y", 1, timedelta(minutes=1)))
    (_, one), (_, other) = token_of(alice, tenant), token_of(alice, tenant)
    assert [bearer(text).get(ME).status_code for text in (one, one, other)] == [200, 429, 200]


def test_use_is_stored_at_most_once_a_minute(alice: User, tenant: Tenant, django_assert_num_queries: Any):
    token, text = token_of(alice, tenant)
    client = bearer(text)
    client.get(ME, REMOTE_ADDR="192.0.2.7")
    token.refresh_from_db()
    first = token.last_used_at
    assert first is not None
    assert token.last_used_from == "192.0.2.7"
    with django_assert_num_queries(3):  # token with user and role, count of requests, memberships
        client.get(ME)
    token.refresh_from_db()
    assert token.last_used_at == first
    ApiToken.objects.update(last_used_at=first - timedelta(seconds=61))
    client.get(ME, REMOTE_ADDR="192.0.2.8")
    token.refresh_from_db()
    assert token.last_used_at is not None
    assert token.last_used_at > first - timedelta(seconds=1)
    assert token.last_used_from == "192.0.2.8"


def test_token_reaches_its_own_tenant_only(alice: User, charlie: User, pipe: Pipe, a_spec: MakeSpec, tenant: Tenant):
    other = charlie.tenants.get()
    Membership.objects.create(tenant=other, user=alice, role=Role.OWNER)
    elsewhere = create_pipe(tenant=other, name="other", spec=a_spec(), author=charlie)
    client = bearer(token_of(alice, tenant, scope="admin")[1])
    assert [row["id"] for row in client.get("/api/v1/pipes/").json()["results"]] == [pipe.id]
    assert client.get(f"/api/v1/pipes/{elsewhere.id}/").status_code == 404
    assert client.get(f"/api/v1/tenants/{other.id}/members/").status_code == 404
    created = client.post("/api/v1/pipes/", {"name": "new", "spec": a_spec()})
    assert created.status_code == 201
    assert Pipe.objects.get(name="new").tenant == tenant  # although Alice has two


def test_token_of_one_pipe_finds_nothing_else(alice: User, pipe: Pipe, tenant: Tenant, a_spec: MakeSpec):
    second = create_pipe(tenant=tenant, name="second", spec=a_spec(), author=alice)
    client = bearer(token_of(alice, tenant, scope="admin", pipe=pipe)[1])
    assert [row["id"] for row in client.get("/api/v1/pipes/").json()["results"]] == [pipe.id]
    assert client.get(f"/api/v1/pipes/{pipe.id}/").status_code == 200
    assert client.get(f"/api/v1/pipes/{second.id}/").status_code == 404
    assert refusal(client, f"/api/v1/tenants/{tenant.id}/members/") == (403, "token-of-one-pipe")
    assert client.post("/api/v1/pipes/", {"name": "new", "spec": a_spec()}).status_code == 403
    assert client.get("/api/v1/lookup-tables/").json()["results"] == []
    assert client.get("/registry/subjects").status_code == 403


def test_token_opens_the_wire_api_of_the_registry(alice: User, tenant: Tenant):
    assert bearer(token_of(alice, tenant)[1]).get("/registry/subjects").json() == []
    assert bearer("pst_0").get("/registry/subjects").status_code == 401


def test_token_of_staff_reaches_no_staff_route_and_no_page(alice: User, tenant: Tenant):
    alice.is_staff = True
    alice.save()
    client = bearer(token_of(alice, tenant, scope="admin")[1])
    assert client.get("/api/v1/staff/cells/").status_code == 404
    assert client.get("/").headers["Location"].startswith("/sign-in/")
    assert client.get("/admin/").status_code == 302


def test_removed_member_has_no_valid_token_left(alice: User, bob: User, tenant: Tenant):
    texts = [token_of(bob, tenant)[1] for _ in range(2)]
    _, alices = token_of(alice, tenant)
    assert revoke_tokens_of(user=bob, tenant=tenant, by=alice) == 2
    assert [refusal(bearer(text)) for text in texts] == [(401, "token-revoked")] * 2
    assert bearer(alices).get(ME).status_code == 200


def test_service_account_has_tokens_and_no_sign_in(alice: User, tenant: Tenant, client: Client):
    account = create_service_account(tenant=tenant, name="deploy", role="operator", by=alice, now=timezone.now())
    user = account.user
    _, text = create_token(
        tenant=tenant, user=user, by=alice, name="CI", scope="operate", days=None, now=timezone.now()
    )
    assert bearer(text).get(ME).json()["tenants"][0]["role"] == "operator"
    user.set_password("a long enough password")
    user.save()
    assert not client.login(username=user.username, password="a long enough password")
    client.force_login(user)
    assert client.get("/").headers["Location"].startswith("/sign-in/")
    link = make_sign_in_link(user=user, base_url="http://x")
    assert user_for_sign_in_token(token=link.rstrip("/").rpartition("/")[2]) is None
    assert not LimitedBackend().user_can_authenticate(user)


def test_disabled_service_account_is_refused_until_it_is_enabled_and_a_removed_one_for_good(
    alice: User, tenant: Tenant
):
    now = timezone.now()
    account = create_service_account(tenant=tenant, name="deploy", role="viewer", by=alice, now=now)
    _, text = create_token(tenant=tenant, user=account.user, by=alice, name="CI", scope="read", days=1, now=now)
    change_service_account(account=account, by=alice, is_active=False)
    assert refusal(bearer(text)) == (401, "token-invalid")
    change_service_account(account=account, by=alice, is_active=True, role="operator")
    assert bearer(text).get(ME).status_code == 200
    remove_service_account(account=account, by=alice, now=now)
    assert refusal(bearer(text)) == (401, "token-revoked")
    assert not Membership.objects.filter(user=account.user).exists()
    create_service_account(tenant=tenant, name="deploy", role="viewer", by=alice, now=now)  # the name is free again
