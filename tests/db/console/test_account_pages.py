"""Accounts: sign-in by address, password reset, second factors, passkeys, sessions. All by django-allauth's pages."""

import json
import re
import time
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, hotp_value
from cryptography.fernet import Fernet
from django.core import mail
from django.core.cache import cache
from django.core.mail.backends.locmem import EmailBackend
from django.test import Client
from pytest_django import Settings

from mgmt.models import Tenant, User
from mgmt.services import make_sign_in_link
from mgmt.tenancy.services.rotation import rotate_secrets
from mgmt.tenancy.services.sign_in_limits import PER_ACCOUNT_AND_ADDRESS
from tests.support.passkey import SoftwarePasskey

pytestmark = pytest.mark.django_db
PASSWORD = "alice's long password"
NEW = "violet giraffe 81 kettle"


@pytest.fixture
def alice(alice: User) -> User:
    """Alice, with a confirmed address."""
    User.objects.filter(pk=alice.pk).update(email="alice@example.com")
    EmailAddress.objects.create(user=alice, email="alice@example.com", verified=True, primary=True)
    alice.refresh_from_db()
    return alice


def sign_in(client: Client, name: str = "alice", password: str = PASSWORD, **more: str) -> Any:
    return client.post("/sign-in/", {"username": name, "password": password, **more})


@pytest.fixture
def client() -> Client:
    return Client(SERVER_NAME="localhost")


@pytest.fixture
def browser(alice: User, tenant: Tenant) -> Client:
    """Browser in which Alice has just signed in and confirmed her password."""
    client = Client(SERVER_NAME="localhost")
    sign_in(client)
    client.post("/account/reauthenticate/", {"password": PASSWORD})
    return client


def code_of(secret: str) -> str:
    """Return the code that an authenticator app shows now."""
    code: str = format_hotp_value(hotp_value(secret, int(time.time()) // 30))
    return code


def options_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script id="js_data" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found
    options: dict[str, Any] = json.loads(found[1])
    return options


def add_passkey(browser: Client) -> SoftwarePasskey:
    passkey = SoftwarePasskey()
    page = browser.get("/account/mfa/webauthn/add/")
    credential = passkey.create(options_of(page.text)["creation_options"])
    added = browser.post(
        "/account/mfa/webauthn/add/", {"name": "Laptop", "passwordless": "on", "credential": credential}
    )
    assert added.status_code == 302, added.text
    return passkey


def add_app(browser: Client) -> str:
    page = browser.get("/account/mfa/totp/activate/")
    secret: str = page.context["form"].secret
    assert browser.post("/account/mfa/totp/activate/", {"code": code_of(secret)}).status_code == 302
    return secret


@pytest.mark.parametrize("name", ["alice", "alice@example.com", " Alice@Example.com"])
def test_sign_in_by_user_name_or_confirmed_address(alice: User, client: Client, name: str):
    answer = sign_in(client, name, next="/usage/")
    assert (answer.status_code, answer["Location"]) == (302, "/usage/")
    assert "penstock_device" in client.cookies


def test_address_that_is_not_confirmed_does_not_sign_in(alice: User, client: Client):
    EmailAddress.objects.update(verified=False)
    assert sign_in(client, "alice@example.com").status_code == 403


@pytest.mark.parametrize("name", ["alice", "alice@example.com"])
def test_attempts_by_name_and_by_address_are_limited_each(alice: User, client: Client, name: str):
    for _ in range(PER_ACCOUNT_AND_ADDRESS.most):
        sign_in(client, name, "wrong")
    assert sign_in(client, name).status_code == 429


def test_sign_up_is_closed_without_an_invitation(client: Client, db: None):
    for path in ("/account/signup/", "/account/signup/passkey/"):
        page = client.post(path, {"username": "eve", "email": "eve@example.com", "password1": NEW})
        assert "Sign-up is by invitation" in page.text
    assert not User.objects.filter(username="eve").exists()


def test_forgotten_password_is_reset_by_mail(alice: User, client: Client):
    client.post("/account/password/reset/", {"email": "alice@example.com"})
    (sent,) = mail.outbox
    assert (sent.to, sent.subject) == (["alice@example.com"], "[Penstock] Set a new password")
    found = re.search(r"https?://[^/]+(/account/password/reset/key/\S+)", str(sent.body))
    assert found
    form = client.get(found[1], follow=True).redirect_chain[-1][0]
    client.post(form, {"password1": NEW, "password2": NEW})
    assert sign_in(client, password=NEW).status_code == 302
    assert sign_in(Client(), password=PASSWORD).status_code == 403
    assert "Set a new password" not in Client().get(found[1], follow=True).text  # the link worked once


def test_locked_out_user_signs_in_after_a_reset(alice: User):
    guesser, locked = Client(REMOTE_ADDR="203.0.113.1"), Client(REMOTE_ADDR="203.0.113.2")
    for client in (guesser, locked):
        for _ in range(PER_ACCOUNT_AND_ADDRESS.most):
            sign_in(client, password="wrong")
        assert sign_in(client).status_code == 429
    locked.post("/account/password/reset/", {"email": "alice@example.com"})
    found = re.search(r"https?://[^/]+(/account/password/reset/key/\S+)", str(mail.outbox[0].body))
    assert found
    form = locked.get(found[1], follow=True).redirect_chain[-1][0]
    locked.post(form, {"password1": NEW, "password2": NEW})
    assert sign_in(locked, password=NEW).status_code == 302
    assert sign_in(guesser, password=NEW).status_code == 429


def test_reset_link_names_the_configured_host(alice: User, settings: Settings):
    settings.ALLOWED_HOSTS = ["*"]
    Client(headers={"host": "evil.example.com"}).post("/account/password/reset/", {"email": "alice@example.com"})
    assert "evil.example.com" not in str(mail.outbox[0].body)


def test_unknown_address_gets_the_same_page_and_no_link(client: Client, alice: User):
    known = client.post("/account/password/reset/", {"email": "alice@example.com"})
    unknown = client.post("/account/password/reset/", {"email": "eve@example.com"})
    assert (known.status_code, known["Location"]) == (unknown.status_code, unknown["Location"])
    assert "http" not in str(mail.outbox[1].body)


def test_resets_are_limited_by_address_in_the_database(alice: User):
    typed = {"email": "alice@example.com"}
    codes = [Client(REMOTE_ADDR=f"203.0.113.{n}").post("/account/password/reset/", typed).status_code for n in range(6)]
    assert codes == [302] * 5 + [429]
    cache.clear()
    assert Client().post("/account/password/reset/", typed).status_code == 302


def test_mail_server_that_refuses_is_reported(alice: User, client: Client, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_args: object) -> int:
        raise ConnectionRefusedError

    monkeypatch.setattr(EmailBackend, "send_messages", refuse)
    answer = client.post("/account/password/reset/", {"email": "alice@example.com"})
    assert (answer.status_code, "could not be sent" in answer.text) == (503, True)


def test_password_change_checks_the_old_one_within_the_limits(browser: Client, alice: User):
    typed = {"oldpassword": "wrong", "password1": NEW, "password2": NEW}
    page = browser.post("/account/password/change/", typed)
    assert "The current password is wrong" in page.text
    browser.post("/account/password/change/", typed | {"oldpassword": PASSWORD})
    assert User.objects.get(pk=alice.pk).check_password(NEW)
    codes = [browser.post("/account/password/change/", typed).status_code for _ in range(9)]
    assert codes[-1] == 429


def test_changed_address_is_confirmed_by_a_code(browser: Client, alice: User):
    browser.post("/account/email/", {"email": "ada@example.com", "action_add": ""})
    assert User.objects.get(pk=alice.pk).email == "alice@example.com"
    sent = next(one for one in mail.outbox if one.to == ["ada@example.com"])
    code = re.search(r"^([A-Z0-9]{4}-[A-Z0-9]{4})$", str(sent.body), re.MULTILINE)
    assert code, sent.body
    browser.post("/account/confirm-email/", {"code": code[1]})
    assert User.objects.get(pk=alice.pk).email == "ada@example.com"


def test_authenticator_app_is_asked_for_after_the_password(browser: Client, alice: User, client: Client):
    secret = add_app(browser)
    stored = Authenticator.objects.get(type="totp").data["secret"]
    assert secret not in stored  # encrypted
    answer = sign_in(client, next="/usage/")
    assert answer["Location"] == "/account/mfa/authenticate/"
    assert client.get("/").status_code == 302  # not signed in
    cache.clear()  # the code was used when the app was set up
    wrong = client.post("/account/mfa/authenticate/", {"code": "000000"})
    assert wrong.status_code == 200
    done = client.post("/account/mfa/authenticate/", {"code": code_of(secret)})
    assert done["Location"] == "/usage/"
    assert client.get("/usage/").status_code == 200
    again = Client()
    sign_in(again)
    assert again.post("/account/mfa/authenticate/", {"code": code_of(secret)}).status_code == 200  # used once
    assert again.get("/").status_code == 302


def test_account_with_an_unconfirmed_address_can_set_up_a_second_factor(browser: Client, alice: User):
    EmailAddress.objects.update(verified=False)
    assert "Not confirmed" in browser.get("/account/").text
    browser.get("/account/email/")
    add_passkey(browser)
    assert "Laptop" in browser.get("/account/").text


def test_refusals_of_the_account_pages_are_not_shown_as_successes(client: Client, alice: User):
    client.post("/account/mfa/webauthn/login/", {"credential": "{}"})
    assert 'class="note note-bad' in client.get("/sign-in/").text


def test_codes_are_limited_by_account(browser: Client, alice: User):
    secret = add_app(browser)
    cache.clear()
    for number in range(5):
        guesser = Client(REMOTE_ADDR=f"203.0.113.{number}")
        sign_in(guesser)
        guesser.post("/account/mfa/authenticate/", {"code": "000000"})
    late = Client(REMOTE_ADDR="203.0.113.9")
    sign_in(late)
    assert "Too many" in late.post("/account/mfa/authenticate/", {"code": code_of(secret)}).text
    assert late.get("/").status_code == 302


def test_recovery_code_works_once(browser: Client, alice: User):
    add_app(browser)
    codes = Authenticator.objects.get(type="recovery_codes").wrap().get_unused_codes()
    found = []
    for _ in range(2):
        client = Client()
        sign_in(client)
        client.post("/account/mfa/authenticate/", {"code": codes[0]})
        found.append(client.get("/").status_code)
    assert found == [200, 302]


def test_sign_in_link_still_needs_the_second_factor(browser: Client, alice: User, client: Client):
    add_app(browser)
    alice.refresh_from_db()
    answer = client.get(make_sign_in_link(user=alice, base_url=""))
    assert answer["Location"] == "/account/mfa/authenticate/"


def test_passkey_signs_in_without_a_password(browser: Client, alice: User, client: Client):
    passkey = add_passkey(browser)
    assert "Laptop" in browser.get("/account/").text
    options = client.get("/account/mfa/webauthn/login/", headers={"accept": "application/json"}).json()
    done = client.post("/account/mfa/webauthn/login/", {"credential": passkey.get(options["request_options"])})
    assert done.status_code == 302
    assert client.get("/").status_code == 200


def test_passkey_of_another_site_does_not_sign_in(browser: Client, client: Client):
    passkey = add_passkey(browser)
    passkey.origin = "https://evil.example.com"
    options = client.get("/account/mfa/webauthn/login/", headers={"accept": "application/json"}).json()
    client.post("/account/mfa/webauthn/login/", {"credential": passkey.get(options["request_options"])})
    assert client.get("/").status_code == 302


def test_new_person_joins_with_a_passkey_and_no_password(browser: Client, tenant: Tenant, client: Client):
    browser.post("/members/", {"email": "ada@example.com", "as_role": "editor"})
    found = re.search(r"https?://[^/]+(/invitations/\S+)", str(mail.outbox[-1].body))
    assert found
    answer = client.post(found[1], {"username": "ada", "passkey": "yes"})
    assert answer["Location"] == "/account/mfa/webauthn/signup/"
    passkey = SoftwarePasskey()
    page = client.get(answer["Location"])
    credential = passkey.create(options_of(page.text)["creation_options"])
    client.post(answer["Location"], {"name": "Phone", "credential": credential})
    assert "Account of ada" in client.get("/account/").text
    ada = User.objects.get(username="ada")
    assert (ada.has_usable_password(), ada.memberships.get().role) == (False, "editor")
    assert EmailAddress.objects.get(user=ada).verified


def test_other_sessions_are_signed_out(browser: Client, alice: User):
    other = Client()
    sign_in(other)
    page = browser.get("/account/sessions/").text
    assert page.count("127.0.0.1") == 2
    browser.post("/account/sessions/")
    assert (browser.get("/").status_code, other.get("/").status_code) == (200, 302)


def test_pages_of_the_account_have_no_inline_script_or_style(browser: Client):
    add_app(browser)
    paths = [
        "",
        "email/",
        "password/change/",
        "sessions/",
        "mfa/totp/deactivate/",
        "mfa/webauthn/",
        "mfa/webauthn/add/",
    ]
    paths += ["mfa/recovery-codes/", "mfa/recovery-codes/generate/", "reauthenticate/", "mfa/reauthenticate/"]
    for path in paths:
        answer = browser.get(f"/account/{path}")
        assert answer.status_code == 200, path
        assert not re.search(r"\son\w+=|\sstyle=", answer.text), path
        scripts = re.findall(r"<script(?![^>]*(?:src=|application/json))[^>]*>", answer.text)
        assert scripts == [], path


def test_second_factors_are_reencrypted_with_the_first_key(browser: Client, settings: Settings):
    secret = add_app(browser)
    settings.PENSTOCK_FERNET_KEYS = [Fernet.generate_key().decode(), *settings.PENSTOCK_FERNET_KEYS]
    rotate_secrets()
    settings.PENSTOCK_FERNET_KEYS = settings.PENSTOCK_FERNET_KEYS[:1]
    row = Authenticator.objects.get(type="totp")
    cache.clear()
    assert TOTP(row).validate_code(code_of(secret))
    assert Authenticator.objects.get(type="recovery_codes").wrap().get_unused_codes()
