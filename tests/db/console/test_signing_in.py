"""Signing in by password and by link, and the switches of the top bar."""

import pytest
from django.test import Client

from mgmt.console.throttle import PER_NAME
from mgmt.models import Pipe, User
from mgmt.services import create_tenant, make_sign_in_link
from tests.db.console.truth import BrowserOf

pytestmark = pytest.mark.django_db
PASSWORD = "alice's long password"


def attempt(client: Client, name: str, password: str, **more: str):
    return client.post("/sign-in/", {"username": name, "password": password, **more})


def test_a_good_password_leads_home(client: Client, alice: User):
    answer = attempt(client, "alice", PASSWORD)
    assert (answer.status_code, answer.url) == (302, "/")


def test_a_wrong_name_and_a_wrong_password_get_the_same_words(client: Client, alice: User):
    one, other = attempt(client, "alice", "wrong"), attempt(client, "nobody", "wrong")
    assert one.status_code == other.status_code == 403
    assert "No account has this name and password" in one.content.decode()
    assert "No account has this name and password" in other.content.decode()


def test_after_sign_in_one_comes_to_the_page_one_asked_for(client: Client, alice: User, pipe: Pipe):
    assert attempt(client, "alice", PASSWORD, next=f"/pipes/{pipe.id}/").url == f"/pipes/{pipe.id}/"


@pytest.mark.parametrize("target", ["https://evil.example.com/", "//evil.example.com", "javascript:alert(1)"])
def test_nobody_is_sent_to_another_site(client: Client, alice: User, target: str):
    assert attempt(client, "alice", PASSWORD, next=target).url == "/"


def test_guessing_one_name_is_refused_even_with_the_right_password(client: Client, alice: User):
    for _ in range(PER_NAME):
        assert attempt(client, "alice", "wrong").status_code == 403
    answer = attempt(client, "alice", PASSWORD)
    assert answer.status_code == 429
    assert "Wait 5 minutes" in answer.content.decode()


def test_a_sign_in_link_works_once(client: Client, alice: User):
    link = make_sign_in_link(user=alice, base_url="")
    first, second = client.get(link), Client().get(link)
    assert (first.status_code, first["Location"]) == (302, "/")
    assert client.get("/").status_code == 200
    assert second.status_code == 403
    assert "used already" in second.content.decode()


def test_signing_out_ends_the_session_and_needs_a_post(browser_of: BrowserOf, alice: User):
    browser = browser_of(alice)
    assert browser.get("/sign-out/").status_code == 405
    browser.post("/sign-out/")
    assert browser.get("/").status_code == 302


def test_the_theme_is_kept_in_a_cookie_and_sent_with_the_page(client: Client):
    client.post("/theme/")
    assert 'data-bs-theme="dark"' in client.get("/sign-in/").content.decode()
    client.post("/theme/")
    assert 'data-bs-theme="light"' in client.get("/sign-in/").content.decode()


def test_switching_the_tenant_shows_its_pipes_only(browser_of: BrowserOf, alice: User, pipe: Pipe):
    second = create_tenant(name="Second", owner=alice)
    browser = browser_of(alice)
    assert "orders" in browser.get("/").content.decode()
    browser.post("/tenant/", {"tenant": second.id})
    assert "orders" not in browser.get("/").content.decode()


def test_a_tenant_of_somebody_else_cannot_be_switched_to(browser_of: BrowserOf, alice: User, charlie: User, pipe: Pipe):
    browser = browser_of(alice)
    browser.post("/tenant/", {"tenant": charlie.tenants.get().id})
    assert "orders" in browser.get("/").content.decode()
