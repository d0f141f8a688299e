"""Sign-in by password and by link, and the switches of the top bar."""

import base64
import re
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth import authenticate
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils.crypto import pbkdf2
from pytest_django import Settings

from config.proxies import parse_proxies
from mgmt.models import Pipe, User
from mgmt.services import create_tenant, make_sign_in_link
from mgmt.tenancy.authentication import wait_of
from mgmt.tenancy.services.sign_in_limits import (
    LINKS_PER_ADDRESS,
    PER_ACCOUNT,
    PER_ACCOUNT_AND_ADDRESS,
    PER_ADDRESS,
)
from tests.db.console.truth import BrowserOf

pytestmark = pytest.mark.django_db
PASSWORD = "alice's long password"


def attempt(client: Client, name: str, password: str, **more: str):
    return client.post("/sign-in/", {"username": name, "password": password, **more})


def test_correct_password_redirects_to_home(client: Client, alice: User):
    answer = attempt(client, "alice", PASSWORD)
    assert (answer.status_code, answer.url) == (302, "/")


def test_unknown_user_and_wrong_password_get_the_same_message(client: Client, alice: User):
    one, other = attempt(client, "alice", "wrong"), attempt(client, "nobody", "wrong")
    assert one.status_code == other.status_code == 403
    assert "No account has this name and password" in one.content.decode()
    assert "No account has this name and password" in other.content.decode()


def test_sign_in_redirects_to_the_requested_page(client: Client, alice: User, pipe: Pipe):
    assert attempt(client, "alice", PASSWORD, next=f"/pipes/{pipe.id}/").url == f"/pipes/{pipe.id}/"


@pytest.mark.parametrize("target", ["https://evil.example.com/", "//evil.example.com", "javascript:alert(1)"])
def test_sign_in_never_redirects_to_another_site(client: Client, alice: User, target: str):
    assert attempt(client, "alice", PASSWORD, next=target).url == "/"


def fail(client: Client, count: int, name: str = "alice", **more: str) -> list[int]:
    return [attempt(client, name, "wrong", **more).status_code for _ in range(count)]


@pytest.mark.parametrize("name", ["alice@example.com", "nobody@example.com"])
def test_limit_does_not_show_whether_an_address_has_an_account(alice: User, name: str):
    """Ten failures of the user name say nothing about the address, and ten of the address nothing about the name."""
    EmailAddress.objects.create(user=alice, email="alice@example.com", verified=True, primary=True)
    client = from_("203.0.113.1")
    assert fail(client, PER_ACCOUNT_AND_ADDRESS.most + 1)[-1] == 429
    statuses = fail(client, PER_ACCOUNT_AND_ADDRESS.most + 1, name)
    assert statuses == [403] * PER_ACCOUNT_AND_ADDRESS.most + [429]
    assert guess("alice", "203.0.113.2") == guess(name, "203.0.113.2") == 0


def test_known_and_unknown_addresses_get_equal_responses_with_equal_work(alice: User):
    EmailAddress.objects.create(user=alice, email="alice@example.com", verified=True, primary=True)
    names = ("alice@example.com", "nobody@example.com")
    found = []
    for name in names:
        client, work = from_("203.0.113.9"), []
        for _ in range(PER_ACCOUNT_AND_ADDRESS.most + 2):
            with CaptureQueriesContext(connection) as queries:
                answer = attempt(client, name, "wrong")
            body = re.sub(r"\b[A-Za-z0-9]{32,}\b", "", answer.text)
            work.append((answer.status_code, body.replace(name, ""), len(queries)))
        found.append(work)
    known, unknown = found
    assert [status for status, _, _ in known][-2:] == [429, 429]
    assert known == unknown


def from_(address: str) -> Client:
    return Client(REMOTE_ADDR=address)


def guess(name: str, address: str) -> int:
    """Try a wrong password without the page; return the throttle's wait, 0 if the password was checked."""
    request = RequestFactory().post("/", REMOTE_ADDR=address)
    assert authenticate(request, username=name, password="wrong") is None
    return wait_of(request)


def test_guessing_one_account_is_throttled_even_with_the_correct_password(alice: User):
    client = from_("203.0.113.1")
    assert fail(client, PER_ACCOUNT_AND_ADDRESS.most) == [403] * PER_ACCOUNT_AND_ADDRESS.most
    answer = attempt(client, "alice", PASSWORD)
    assert answer.status_code == 429
    assert "Wait 5 minutes" in answer.content.decode()
    assert 0 < int(answer["Retry-After"]) <= 300
    assert attempt(from_("203.0.113.2"), "alice", PASSWORD).status_code == 302


def test_variants_of_a_user_name_count_for_the_same_account(alice: User):
    client = from_("203.0.113.1")
    for number, name in enumerate(["alice", "ALICE", " alice ", "\uff41lice", "Alice"] * 2):
        assert attempt(client, name, "wrong").status_code == 403, number
    assert attempt(client, "alice", PASSWORD).status_code == 429


def test_unknown_account_is_answered_like_an_existing_one(alice: User):
    answers = {}
    for name in ("alice", "nobody"):
        client = from_(f"203.0.113.{len(name)}")
        fail(client, PER_ACCOUNT_AND_ADDRESS.most, name)
        answers[name] = attempt(client, name, PASSWORD)
    assert answers["alice"].status_code == answers["nobody"].status_code == 429
    words = [re.findall(r'role="alert">([^<]+)<', answer.content.decode()) for answer in answers.values()]
    assert words[0] == words[1] != []


@pytest.mark.parametrize("kind", ["unknown", "without a password", "not active"])
def test_every_account_costs_the_same_password_hash_iterations(
    alice: User, settings: Settings, monkeypatch: pytest.MonkeyPatch, kind: str
):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    monkeypatch.setattr(PBKDF2PasswordHasher, "iterations", 1_000)
    alice.set_password(PASSWORD)
    alice.save()
    link_only = User.objects.create_user("without a password")
    link_only.set_unusable_password()
    link_only.save()
    User.objects.create_user("not active", password=PASSWORD, is_active=False)
    rounds: list[int] = []

    def counted(password: str, salt: str, iterations: int, *args: Any, **kwargs: Any) -> bytes:
        rounds.append(iterations)
        return pbkdf2(password, salt, iterations, *args, **kwargs)

    monkeypatch.setattr("django.contrib.auth.hashers.pbkdf2", counted)

    def rounds_of(name: str) -> int:
        rounds.clear()
        assert authenticate(None, username=name, password="wrong") is None
        return sum(rounds)

    assert rounds_of(kind) == rounds_of("alice") == 1_000


def test_three_hundred_unknown_names_reset_no_limit(alice: User):
    client = from_("203.0.113.1")
    fail(client, PER_ACCOUNT_AND_ADDRESS.most)
    for number in range(300):
        guess(f"junk {number}", f"198.51.100.{number % 250}")
    assert attempt(client, "alice", PASSWORD).status_code == 429


def test_one_address_may_try_a_limited_number_of_names(alice: User):
    client = from_("203.0.113.1")
    found = [guess(f"name {number}", "203.0.113.1") for number in range(PER_ADDRESS.most)]
    assert found == [0] * PER_ADDRESS.most
    assert attempt(client, "alice", PASSWORD).status_code == 429
    assert attempt(from_("203.0.113.2"), "alice", PASSWORD).status_code == 302


def test_distributed_guessing_is_throttled_and_the_owners_browser_is_not(alice: User):
    owners = from_("203.0.113.1")
    assert attempt(owners, "alice", PASSWORD).status_code == 302
    owners.post("/sign-out/")
    for number in range(PER_ACCOUNT.most):
        assert guess("alice", f"198.51.100.{number}") == 0
    assert attempt(from_("192.0.2.7"), "alice", PASSWORD).status_code == 429
    owners.defaults["REMOTE_ADDR"] = "203.0.113.200"  # another network, the same browser
    assert attempt(owners, "alice", PASSWORD).status_code == 302


def test_known_browser_is_throttled_too_and_is_known_only_for_its_account(alice: User):
    known = from_("203.0.113.1")
    attempt(known, "alice", PASSWORD)
    known.post("/sign-out/")
    assert fail(known, PER_ACCOUNT_AND_ADDRESS.most + 1)[-1] == 429
    User.objects.create_user("bob", password=PASSWORD)
    for number in range(PER_ACCOUNT.most):
        guess("bob", f"198.51.100.{number}")
    assert attempt(known, "bob", PASSWORD).status_code == 429


def test_successful_sign_in_resets_the_accounts_failures_at_that_address(alice: User):
    client = from_("203.0.113.1")
    fail(client, PER_ACCOUNT_AND_ADDRESS.most - 1)
    assert attempt(client, "alice", PASSWORD).status_code == 302
    client.logout()
    client.cookies.clear()
    assert fail(client, PER_ACCOUNT_AND_ADDRESS.most) == [403] * PER_ACCOUNT_AND_ADDRESS.most


def test_sign_in_page_of_the_admin_is_that_of_the_console(client: Client, alice: User):
    answer = client.get("/admin/", follow=True)
    assert answer.redirect_chain[-1][0] == "/sign-in/?next=%2Fadmin%2F"
    posted = client.post("/admin/login/?next=/admin/", {"username": "alice", "password": PASSWORD})
    assert (posted.status_code, "_auth_user_id" in client.session) == (302, False), "the admin login checks no password"
    User.objects.create_superuser("root", password=PASSWORD)
    assert attempt(client, "root", PASSWORD, next="/admin/").url == "/admin/"
    assert client.get("/admin/").status_code == 200


def test_non_staff_member_gets_403_instead_of_a_redirect_loop(client: Client, alice: User):
    attempt(client, "alice", PASSWORD)
    assert client.get("/admin/", follow=True).status_code == 403


def test_basic_auth_and_sign_in_page_share_one_limit(alice: User):
    client = from_("203.0.113.1")
    basic = "Basic " + base64.b64encode(b"alice:wrong").decode()
    half = PER_ACCOUNT_AND_ADDRESS.most // 2
    found = [client.get("/api/v1/me/", headers={"authorization": basic}).status_code for _ in range(half)]
    assert found == [401] * half
    assert fail(client, half) == [403] * half
    good = "Basic " + base64.b64encode(f"alice:{PASSWORD}".encode()).decode()
    answer = client.get("/api/v1/me/", headers={"authorization": good})
    assert (answer.status_code, answer.json()["code"]) == (429, "throttled")
    assert 0 < int(answer["Retry-After"]) <= 300


def test_successful_basic_auth_is_never_counted(alice: User):
    client = from_("203.0.113.1")
    good = "Basic " + base64.b64encode(f"alice:{PASSWORD}".encode()).decode()
    found = {client.get("/api/v1/me/", headers={"authorization": good}).status_code for _ in range(30)}
    assert found == {200}


def test_forged_sign_in_links_are_throttled_without_being_read(alice: User):
    client = from_("203.0.113.1")
    found = [client.get(f"/sign-in/made-up-{n}/").status_code for n in range(LINKS_PER_ADDRESS.most + 1)]
    assert found == [403] * LINKS_PER_ADDRESS.most + [429]
    assert client.get(make_sign_in_link(user=alice, base_url="")).status_code == 429
    assert from_("203.0.113.2").get(make_sign_in_link(user=alice, base_url="")).status_code == 302


# -- behind proxies


@pytest.fixture
def _behind_proxies(settings: Settings) -> None:
    settings.PENSTOCK_TRUSTED_PROXIES = parse_proxies("10.0.0.0/8")


def through(address: str, **more: str) -> Client:
    return Client(REMOTE_ADDR="10.0.0.7", headers={"x-forwarded-for": address, **more})


@pytest.mark.usefixtures("_behind_proxies")
def test_each_client_behind_a_proxy_has_its_own_limit(alice: User):
    guesser = through("203.0.113.1")
    fail(guesser, PER_ACCOUNT_AND_ADDRESS.most)
    assert attempt(guesser, "alice", PASSWORD).status_code == 429
    assert attempt(through("203.0.113.2"), "alice", PASSWORD).status_code == 302


@pytest.mark.usefixtures("_behind_proxies")
def test_forged_addresses_before_the_proxys_entry_evade_no_limit(alice: User):
    for number in range(PER_ACCOUNT_AND_ADDRESS.most):
        fail(through(f"192.0.2.{number}, 203.0.113.1"), 1)  # the proxy appended the last one
    assert attempt(through("192.0.2.99, 203.0.113.1"), "alice", PASSWORD).status_code == 429


def test_forwarded_address_is_ignored_without_a_trusted_proxy(alice: User):
    for number in range(PER_ACCOUNT_AND_ADDRESS.most):
        fail(Client(REMOTE_ADDR="203.0.113.1", headers={"x-forwarded-for": f"192.0.2.{number}"}), 1)
    spoofed = Client(REMOTE_ADDR="203.0.113.1", headers={"x-forwarded-for": "192.0.2.99"})
    assert attempt(spoofed, "alice", PASSWORD).status_code == 429


def test_sign_in_link_works_once(client: Client, alice: User):
    link = make_sign_in_link(user=alice, base_url="")
    first, second = client.get(link), Client().get(link)
    assert (first.status_code, first["Location"]) == (302, "/")
    assert client.get("/").status_code == 200
    assert second.status_code == 403
    assert "already used" in second.content.decode()


def test_sign_out_ends_the_session_and_requires_a_post(browser_of: BrowserOf, alice: User):
    browser = browser_of(alice)
    assert browser.get("/sign-out/").status_code == 405
    browser.post("/sign-out/")
    assert browser.get("/").status_code == 302


def test_theme_is_stored_in_a_cookie_and_rendered_with_the_page(client: Client):
    client.post("/theme/")
    assert 'data-bs-theme="dark"' in client.get("/sign-in/").content.decode()
    client.post("/theme/")
    assert 'data-bs-theme="light"' in client.get("/sign-in/").content.decode()


def test_tenant_switch_shows_only_that_tenants_pipes(browser_of: BrowserOf, alice: User, pipe: Pipe):
    second = create_tenant(name="Second", owner=alice)
    browser = browser_of(alice)
    assert "orders" in browser.get("/").content.decode()
    browser.post("/tenant/", {"tenant": second.id})
    assert "orders" not in browser.get("/").content.decode()


def test_user_cannot_switch_to_a_foreign_tenant(browser_of: BrowserOf, alice: User, charlie: User, pipe: Pipe):
    browser = browser_of(alice)
    browser.post("/tenant/", {"tenant": charlie.tenants.get().id})
    assert "orders" in browser.get("/").content.decode()
