"""Accounts in the browser: staff create a tenant, its owner signs up, adds a passkey, invites, and is locked out.

The passkey is that of Chromium's virtual authenticator. Browsers offer passkeys on http only for localhost, so the
pages are opened there; the links in e-mails name the configured address of the box.
"""

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from localbox.testing import Box
from tests.e2e.conftest import said_by
from tests.e2e.look import Complaints, picture
from tests.e2e.mails import Mails

pytestmark = pytest.mark.timeout(900)
PASSWORD: Final = "violet giraffe 81 kettle"
NEW_PASSWORD: Final = "amber walrus 17 teapot"
AUTHENTICATOR: Final = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


class Person:
    """Browser of one person."""

    def __init__(self, box: Box, chrome: Browser, complaints: Complaints) -> None:
        self.base = f"http://localhost:{urlsplit(box.env['PENSTOCK_WEB_URL']).port}"
        self.page: Page = chrome.new_context().new_page()
        complaints.watch(self.page)

    def opens(self, path: str) -> None:
        """Open a page."""
        self.page.goto(f"{self.base}{path}")

    def types(self, **fields: str) -> None:
        """Fill in fields by their names."""
        for name, text in fields.items():
            self.page.locator(f"main [name={name}]:visible").fill(text)

    def presses(self, name: str) -> None:
        """Press a button."""
        self.page.get_by_role("main").get_by_role("button", name=name, exact=True).click()

    def follows(self, name: str) -> None:
        """Follow a link."""
        self.page.get_by_role("main").get_by_role("link", name=name, exact=True).click()

    def sees(self, text: str) -> None:
        """Wait for a text."""
        expect(self.page.get_by_role("main")).to_contain_text(text)

    def signs_in(self, name: str, password: str) -> None:
        """Sign in by password."""
        self.opens("/sign-in/")
        self.types(username=name, password=password)
        self.presses("Sign in")

    def signs_out(self) -> None:
        """Sign out in the menu of the top bar."""
        self.page.locator("header details.menu summary").last.click()
        self.page.get_by_role("button", name="Sign out").click()
        expect(self.page.get_by_role("heading", name="Sign in")).to_be_visible()

    def gets_authenticator(self) -> None:
        """Attach a virtual authenticator to the browser."""
        cdp = self.page.context.new_cdp_session(self.page)
        cdp.send("WebAuthn.enable")
        cdp.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})


def test_tenant_from_its_creation_to_a_reset_password(box: Box, chrome: Browser, mails: Mails, tmp_path: Path):
    complaints = Complaints()
    staff_password = said_by(box, "tests/e2e/scene.py", "people")["password"]

    staff = Person(box, chrome, complaints)
    staff.signs_in("admin", staff_password)
    staff.opens("/staff/tenants/")
    staff.types(name="Acme", owner_email="ada@acme.example")
    staff.presses("Create and invite")
    staff.sees("We invited ada@acme.example as owner of Acme.")

    ada = Person(box, chrome, complaints)
    ada.gets_authenticator()
    ada.opens(mails.link("ada@acme.example", "/invitations/"))
    picture(ada.page, complaints, tmp_path, "invitation")
    ada.types(username="ada", password=PASSWORD)
    ada.presses("Create account and join")
    ada.sees("You are now a member of Acme.")

    ada.opens("/account/")
    picture(ada.page, complaints, tmp_path, "account")
    ada.follows("Add passkey")
    ada.types(password=PASSWORD)
    ada.presses("Confirm")
    picture(ada.page, complaints, tmp_path, "add-passkey")
    ada.types(name="Laptop")
    ada.presses("Add passkey")
    expect(ada.page.get_by_role("heading", name="Recovery Codes")).to_be_visible()
    ada.opens("/account/")
    ada.sees("Laptop")
    ada.signs_out()
    ada.presses("Use a passkey")
    expect(ada.page).to_have_url(f"{ada.base}/")

    ada.opens("/members/")
    ada.types(email="vic@acme.example")
    ada.page.get_by_label("Role", exact=True).select_option("viewer")
    ada.presses("Send invitation")
    ada.sees("We sent an invitation to vic@acme.example.")
    picture(ada.page, complaints, tmp_path, "members")

    vic = Person(box, chrome, complaints)
    vic.opens(mails.link("vic@acme.example", "/invitations/"))
    vic.types(username="vic", password=PASSWORD)
    vic.presses("Create account and join")
    vic.sees("You are now a member of Acme.")
    vic.opens("/members/")
    vic.sees("Owners can invite and remove members.")
    vic.signs_out()

    vic.page.context.clear_cookies()  # another browser: it is no known device of the account
    complaints.expect_error(f"{vic.base}/sign-in/")
    for _ in range(10):
        vic.signs_in("vic", "wrong")
        vic.sees("No account has this name and password.")
    vic.signs_in("vic", PASSWORD)
    vic.sees("Too many attempts.")
    vic.follows("Forgot your password?")
    vic.types(email="vic@acme.example")
    vic.presses("Reset My Password")
    vic.opens(mails.link("vic@acme.example", "/account/password/reset/key/"))
    vic.types(password1=NEW_PASSWORD, password2=NEW_PASSWORD)
    vic.presses("Change Password")
    vic.signs_in("vic@acme.example", NEW_PASSWORD)
    expect(vic.page).to_have_url(f"{vic.base}/")
    assert not complaints.found, "\n".join(complaints.found)
