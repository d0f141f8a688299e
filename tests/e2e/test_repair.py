"""A destination breaks: its alert comes with the cause; it is mended; one message is sent to try; the rest follows.

In Chromium, on the whole box, with a real receiver: what was accepted arrives, all of it and nothing else.
"""

import json
import re
import sys
import time

import pytest
from playwright.sync_api import Browser, Page, expect

from localbox.testing import Box
from tests.e2e.look import Complaints, sign_in
from tests.rig.receiver import Receiver
from tests.rig.sender import Sender

pytestmark = pytest.mark.timeout(900)
LIVE_MS = 90_000
TOLD_MS = 60_000  # an alert is there within a minute of the first failure
RELEASED_MS = 120_000


def _send(box: Box, key: str, count: int) -> set[str]:
    """Send that many; the ids that were accepted."""
    with Sender(int(box.env["PENSTOCK_INGEST_PORT"]), key, 20) as sender:
        deadline = time.monotonic() + 30
        while len(sender.acked) < count:
            assert time.monotonic() < deadline, "ingest takes nothing"
            time.sleep(0.05)
    return {acked.id for acked in sender.acked}


def _taken(receiver: Receiver) -> set[str]:
    """The ids that were answered with 204."""
    return {one.id for one in receiver.got["/crm"] if one.answered == 204}


def _until(page: Page, receiver: Receiver, wanted: set[str]) -> None:
    """Wait until the receiver has taken all of them with 204."""
    deadline = time.monotonic() + 60
    while not wanted <= _taken(receiver):
        assert time.monotonic() < deadline, f"{len(wanted - _taken(receiver))} did not come"
        page.wait_for_timeout(200)


def test_a_broken_destination_is_found_mended_probed_released_and_resolved(
    whole_box: Box, chrome: Browser, receiver: Receiver
):
    made = whole_box.run(sys.executable, "tests/e2e/scene.py", "pipe", "repairs", receiver.url("/crm"))
    assert made.returncode == 0, made.stderr
    scene = json.loads(made.stdout.splitlines()[-1])
    base = whole_box.env["PENSTOCK_WEB_URL"]
    context = chrome.new_context(storage_state=sign_in(chrome, base, "alice", scene["password"]))
    page, complaints = context.new_page(), Complaints()
    complaints.watch(page)
    page.goto(f"{base}/pipes/{scene['pipe']}/")
    expect(page.locator("#pipe-head")).to_contain_text("live", timeout=LIVE_MS)
    sent = _send(whole_box, scene["key"], 5)
    _until(page, receiver, sent)

    receiver.answers["/crm"] = 401  # it breaks
    sent |= _send(whole_box, scene["key"], 60)
    page.goto(f"{base}/alerts/")
    expect(page.locator("#list")).to_contain_text("crm: answered 401", timeout=TOLD_MS)
    expect(page.get_by_role("link", name=re.compile(r"\d alerts?$"))).to_be_visible()
    page.locator("#list tbody th a", has_text="crm: answered 401").click()
    expect(page.locator("#alert-now")).to_contain_text("401 and 403 speak of credentials")
    page.get_by_role("button", name="I am on it").click()
    expect(page.locator("#alert-now")).to_contain_text("acknowledged")

    page.goto(f"{base}/pipes/{scene['pipe']}/destinations/crm/")
    expect(page.locator("#state")).to_contain_text("suspended", timeout=TOLD_MS)
    page.get_by_role("link", name="Held", exact=True).first.click()
    expect(page.locator("#held tbody tr")).to_contain_text("Resume and release", timeout=TOLD_MS)

    page.goto(f"{base}/alerts/")
    page.locator("#list tbody th a", has_text="crm: answered 401").click()
    page.get_by_role("button", name="I fixed it").click()  # it is not: the message is refused
    expect(page.locator("#alert-now")).to_contain_text("was not accepted", timeout=RELEASED_MS)

    receiver.answers["/crm"] = 204  # now it is
    page.get_by_role("button", name="I fixed it").click()
    expect(page.locator("#alert-now")).to_contain_text("resolved", timeout=RELEASED_MS)
    _until(page, receiver, sent)
    page.goto(f"{base}/pipes/{scene['pipe']}/destinations/crm/")
    expect(page.locator("#state")).to_contain_text("active")
    page.get_by_role("link", name="Dead letters", exact=True).click()
    expect(page.locator("#heaps")).to_contain_text("No dead letter waits", timeout=TOLD_MS)
    page.get_by_role("link", name="Held", exact=True).first.click()
    expect(page.locator("#held")).to_contain_text("Nothing is held", timeout=TOLD_MS)
    assert _taken(receiver) == sent
    context.close()
    assert not complaints.found, "\n".join(complaints.found)
