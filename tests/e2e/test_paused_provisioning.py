"""An admin pauses provisioning; a customer publishes is told why it waits; resumed, it goes live."""

import sys
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from localbox.testing import Box
from tests.e2e.conftest import said_by
from tests.e2e.look import Complaints, sign_in
from tests.rig.receiver import Receiver

pytestmark = pytest.mark.timeout(600)
LIVE_MS: Final = 120_000
SAID_MS: Final = 30_000
REASON: Final = "the books are audited"


@pytest.fixture
def made(whole_box: Box, receiver: Receiver) -> dict[str, Any]:
    """A customer's pipe, and a password for customer and admin."""
    return said_by(whole_box, "tests/e2e/scene.py", "pipe", "waits", receiver.url("/crm"))


def test_a_paused_provisioner_says_so_to_admin_and_customer_and_goes_on_when_resumed(
    whole_box: Box, chrome: Browser, made: dict[str, Any]
):
    base, complaints = whole_box.env["PENSTOCK_WEB_URL"], Complaints()

    def signed_in(who: str) -> BrowserContext:
        return chrome.new_context(storage_state=sign_in(chrome, base, who, made["password"]))

    customer, admin = signed_in("alice").new_page(), signed_in("admin").new_page()
    for page in (customer, admin):
        complaints.watch(page)
    pipe = f"{base}/pipes/{made['pipe']}/"
    customer.goto(pipe)
    expect(customer.locator("#pipe-head")).to_contain_text("live", timeout=LIVE_MS)

    admin.goto(f"{base}/staff/")
    admin.get_by_label("Controller").select_option("provision")
    admin.get_by_label("For").select_option("until ended")
    admin.get_by_label("Reason").fill(REASON)
    admin.get_by_role("button", name="Pause", exact=True).click()
    expect(admin.locator("#list")).to_contain_text("paused everywhere")

    customer.goto(f"{pipe}edit/")
    customer.get_by_role("button", name="Add a step", exact=True).click()
    customer.get_by_label("Path of step 1", exact=True).fill("order.total")
    customer.get_by_label("New path of step 1", exact=True).fill("order.amount")
    customer.get_by_role("button", name="Publish revision 2").click()
    customer.goto(pipe)
    expect(customer.locator("#pipe-head")).to_contain_text(
        f"provisioning is paused by admin: {REASON}", timeout=SAID_MS
    )
    said = whole_box.run(sys.executable, "manage.py", "explain", "waits")
    assert f"not now, for provisioning is paused by admin: {REASON}; again when the pause ends" in said.stdout

    admin.get_by_role("button", name="Resume provisioning everywhere").click()
    expect(admin.locator("#list")).not_to_contain_text("paused everywhere")
    expect(customer.get_by_role("heading", name="waits@2")).to_be_visible(timeout=LIVE_MS)
    admin.goto(f"{base}/staff/audit/")
    for words in ("pause-provision", "resume-provision", "refused", "go-live"):
        expect(admin.locator("#list")).to_contain_text(words)
    for page in (customer, admin):
        page.context.close()
    assert complaints.found == []
