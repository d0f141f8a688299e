"""Single sign-on in the browser: an owner sets it up, a colleague joins by it, the owner links their own account.

The identity providers are processes of their own (tests/support/identity_provider.py, saml_provider.py), to which the
browser and the box speak the real protocols. That of SAML is at another site, `localhost`: its form brings no cookies.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, expect

from localbox.ports import free_ports
from localbox.testing import Box
from tests.e2e.conftest import said_by
from tests.e2e.look import Complaints, picture
from tests.e2e.mails import Mails
from tests.e2e.test_accounts import PASSWORD, Person
from tests.support.identity_provider import CLIENT

pytestmark = pytest.mark.timeout(900)
ROOT: Final = Path(__file__).parents[2]


@contextmanager
def running(module: str) -> Iterator[str]:
    """Run an identity provider; yield its address."""
    port = free_ports(1)[0]
    process = subprocess.Popen(
        [sys.executable, "-m", f"tests.support.{module}", str(port)], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    yield f"http://127.0.0.1:{port}"
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with running("identity_provider") as url:
        yield url


@pytest.fixture(scope="module")
def saml() -> Iterator[str]:
    with running("saml_provider") as url:
        yield url


class Colleague(Person):
    """Browser of a person who uses the configured address of the box, to which the provider sends them back."""

    def __init__(self, box: Box, chrome: Browser, complaints: Complaints) -> None:
        super().__init__(box, chrome, complaints)
        self.base = box.env["PENSTOCK_WEB_URL"]

    def signs_in_at_the_provider(self, email: str) -> None:
        """Sign in at the identity provider."""
        expect(self.page.get_by_role("heading", name="Identity provider")).to_be_visible()
        self.types(email=email)
        self.presses("Sign in here")


def owner_of(tenant: str, name: str, box: Box, chrome: Browser, complaints: Complaints, mails: Mails) -> Colleague:
    """Let staff create a tenant; return its owner, who has accepted the invitation."""
    staff_password = said_by(box, "tests/e2e/scene.py", "people")["password"]
    staff = Colleague(box, chrome, complaints)
    staff.signs_in("admin", staff_password)
    staff.opens("/staff/tenants/")
    address = f"{name}@{tenant.lower()}.example"
    staff.types(name=tenant, owner_email=address)
    staff.presses("Create and invite")

    owner = Colleague(box, chrome, complaints)
    owner.opens(mails.link(address, "/invitations/"))
    owner.types(username=name, password=PASSWORD)
    owner.presses("Create account and join")
    return owner


def test_tenant_sets_up_single_sign_on_and_its_people_sign_in_by_it(
    box: Box, chrome: Browser, mails: Mails, issuer: str, tmp_path: Path
):
    complaints = Complaints()
    ada = owner_of("Acme", "ada", box, chrome, complaints, mails)
    ada.page.get_by_role("link", name="Single sign-on", exact=True).click()
    ada.types(issuer=issuer, client_id=CLIENT[0], client_secret="wrong")
    complaints.expect_error(f"{ada.base}/single-sign-on/")
    ada.presses("Test connection")
    ada.sees("The provider does not accept the client ID and the client secret.")
    picture(ada.page, complaints, tmp_path, "single-sign-on-refused")
    ada.types(client_secret=CLIENT[1])
    ada.presses("Test connection")
    ada.sees("The provider responds and accepts the client.")
    ada.types(client_secret=CLIENT[1])
    ada.page.get_by_label("Let people sign in with this provider").check()
    ada.presses("Save")
    ada.sees("Single sign-on is on.")
    ada.types(domain="acme.example")
    ada.presses("Add domain")
    ada.sees("_penstock.acme.example")
    picture(ada.page, complaints, tmp_path, "single-sign-on")
    address = ada.page.get_by_label("Sign-in address").input_value()

    vic = Colleague(box, chrome, complaints)
    vic.opens("/sign-in/")
    vic.follows("Continue with single sign-on")
    picture(vic.page, complaints, tmp_path, "find-organisation")
    vic.types(organisation="Acme")
    vic.presses("Continue")
    vic.signs_in_at_the_provider("vic@acme.example")
    expect(vic.page).to_have_url(f"{vic.base}/")
    vic.opens("/members/")
    vic.sees("Owners can invite and remove members.")
    complaints.expect_error(f"{vic.base}/account/")
    vic.opens("/account/")
    vic.sees("You signed in by single sign-on.")

    stranger = Colleague(box, chrome, complaints)
    stranger.page.goto(address)
    complaints.expect_error(address + "callback/")
    stranger.signs_in_at_the_provider("eve@bank.example")
    stranger.sees("This organisation accepts only addresses at acme.example.")
    picture(stranger.page, complaints, tmp_path, "refused")

    ada.signs_out()
    ada.page.goto(address)
    ada.signs_in_at_the_provider("ada@acme.example")
    ada.sees("A member of Acme has the address ada@acme.example.")
    ada.follows("Sign in to link")
    ada.types(username="ada", password=PASSWORD)
    ada.presses("Sign in")
    picture(ada.page, complaints, tmp_path, "link")
    ada.presses("Link ada")
    expect(ada.page).to_have_url(f"{ada.base}/")
    ada.signs_out()
    ada.page.goto(address)
    ada.signs_in_at_the_provider("ada@acme.example")
    expect(ada.page).to_have_url(f"{ada.base}/")
    ada.opens("/audit/")
    ada.sees("signed in by")
    ended = [said for said in complaints.found if "callback" not in said]  # its URL has a code
    assert not ended, "\n".join(ended)


def test_people_sign_in_by_saml_from_penstock_and_from_their_provider(
    box: Box, chrome: Browser, mails: Mails, saml: str, tmp_path: Path
):
    complaints = Complaints()
    bea = owner_of("Borel", "bea", box, chrome, complaints, mails)
    bea.page.get_by_role("link", name="Single sign-on", exact=True).click()
    bea.follows("SAML 2.0")
    bea.types(metadata_url=f"{saml}/none")
    complaints.expect_error(f"{bea.base}/single-sign-on/?protocol=saml")
    bea.presses("Test connection")
    bea.sees("it returned 404. Check the metadata URL.")
    bea.types(metadata_url=f"{saml}/metadata")
    bea.page.get_by_label("Let people sign in with this provider").check()
    bea.presses("Save")
    bea.sees("Single sign-on is on.")
    picture(bea.page, complaints, tmp_path, "saml")
    wide = bea.page.viewport_size
    bea.page.set_viewport_size({"width": 390, "height": 900})
    picture(bea.page, complaints, tmp_path, "saml-narrow")  # fingerprints are long words
    assert wide is not None
    bea.page.set_viewport_size(wide)
    address = bea.page.get_by_label("Sign-in address", exact=True).input_value()
    service = {"acs_url": bea.page.get_by_label("ACS URL", exact=True).input_value()}
    service |= {"entity_id": bea.page.get_by_label("Entity ID", exact=True).input_value(), "relay_state": "/members/"}
    start = f"{saml.replace('127.0.0.1', 'localhost')}/start?{urlencode(service)}"

    vic = Colleague(box, chrome, complaints)
    vic.page.goto(address)
    vic.signs_in_at_the_provider("vic@borel.example")
    expect(vic.page).to_have_url(f"{vic.base}/")
    vic.opens("/members/")
    vic.sees("Owners can invite and remove members.")

    nic = Colleague(box, chrome, complaints)
    nic.page.goto(start)
    complaints.expect_error(service["acs_url"].replace("/acs/", "/finish/"))
    nic.signs_in_at_the_provider("nic@borel.example")
    nic.sees("may not start a sign-in here")
    picture(nic.page, complaints, tmp_path, "saml-refused")
    bea.page.get_by_label("The provider may start a sign-in").check()
    bea.presses("Save")
    bea.sees("Single sign-on is on.")
    nic.page.goto(start)
    nic.signs_in_at_the_provider("nic@borel.example")
    expect(nic.page).to_have_url(f"{nic.base}/members/")

    bea.page.goto(start)  # another site leads a person who is signed in to the provider
    bea.signs_in_at_the_provider("mallory@borel.example")
    bea.sees("You are signed in as bea.")
    ended = [said for said in complaints.found if "finish" not in said]  # its URL has a token
    assert not ended, "\n".join(ended)
