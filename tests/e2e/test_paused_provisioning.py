"""An admin pauses provisioning; a customer publishes and sees why it waits; after the resume it is live."""

import sys
from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect

from loadgen.scripted import Receiver
from localbox.testing import Box
from tests.e2e.conftest import LIVE_MS, said_by
from tests.e2e.look import Complaints, sign_in

pytestmark = pytest.mark.timeout(900)
SAID_MS: Final = 60_000
REASON: Final = "the books are audited"


@pytest.fixture
def afterwards_unpaused(whole_box: Box) -> Iterator[None]:
    yield
    said_by(whole_box, "tests/e2e/scene.py", "go-on")


@pytest.mark.usefixtures("afterwards_unpaused")
def test_paused_provisioner_informs_admin_and_customer_and_continues_when_resumed(
    whole_box: Box, chrome: Browser, receiver: Receiver
):
    base, complaints = whole_box.env["PENSTOCK_WEB_URL"], Complaints()
    password = said_by(whole_box, "tests/e2e/scene.py", "people")["password"]

    def signed_in(who: str) -> Page:
        page = chrome.new_context(storage_state=sign_in(chrome, base, who, password)).new_page()
        complaints.watch(page)
        return page

    admin, customer = signed_in("admin"), signed_in("alice")
    admin.goto(f"{base}/staff/")
    admin.get_by_label("Controller", exact=True).select_option("provision")
    admin.get_by_label("Duration", exact=True).select_option("until ended")
    admin.get_by_label("Reason", exact=True).fill(REASON)
    admin.get_by_role("button", name="Pause", exact=True).click()
    provisioning = admin.get_by_role("row", name="Provisioning")  # an earlier test may have paused others
    expect(provisioning).to_contain_text("paused on all cells")

    pipe = said_by(whole_box, "tests/e2e/scene.py", "pipe", "waits", receiver.url("/crm"))["pipe"]
    customer.goto(f"{base}/pipes/{pipe}/")
    head = customer.locator("#pipe-head")
    expect(head).to_contain_text(f"Provisioning is paused by admin: {REASON}.", timeout=SAID_MS)
    said = whole_box.run(sys.executable, "manage.py", "explain", "waits")
    assert f"not now: provisioning is paused by admin: {REASON}; retried when the pause ends" in said.stdout

    admin.get_by_role("button", name="Resume provisioning on all cells").click()
    expect(provisioning).not_to_contain_text("paused on all cells")
    expect(head).to_contain_text("live", timeout=LIVE_MS)
    admin.goto(f"{base}/staff/audit/")
    for words in ("pause-provision", "resume-provision", "refused", "go-live", "the books are audited"):
        expect(admin.locator("#list")).to_contain_text(words)
    admin.goto(f"{base}/staff/cells/c1/")
    expect(admin.locator("#now")).to_contain_text("stable")
    for page in (customer, admin):
        page.context.close()
    assert complaints.found == []
