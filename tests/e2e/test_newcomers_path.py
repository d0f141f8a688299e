"""A newcomer's first five minutes, in a real browser on the whole box: by visible links and buttons alone.

The sign-in link, a sample pipe that moves, a pipe of one's own, its first event; then its destination breaks: the alert
comes with the cause; it is mended, one message is sent to try, the rest follows. What was accepted arrives, all of it.
"""

import json
import re
import time
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, expect

from localbox.testing import Box
from tests.e2e.conftest import LIVE_MS
from tests.e2e.editing import send_first
from tests.e2e.look import Complaints
from tests.rig.patience import Patience
from tests.rig.receiver import Receiver
from tests.rig.sender import Sender

pytestmark = pytest.mark.timeout(900)
LISTENS_MS: Final = 90_000  # its cell runs by then
ARRIVES_MS: Final = 90_000
TOLD_MS: Final = 60_000  # an alert is there within a minute of the first failure
RELEASED_MS: Final = 120_000
FIVE_MINUTES_S: Final = 300.0
BELL: Final = re.compile(r"^(\d+ alerts?|Alerts)$")
ORDER: Final = {"order": {"id": 4711, "total": 129.9}}


def send_more(box: Box, key: str, count: int) -> set[str]:
    """Send that many; the ids that were accepted."""
    with Sender(int(box.env["PENSTOCK_INGEST_PORT"]), key, 20) as sender:
        patience = Patience(30)
        while len(sender.acked) < count:
            assert not patience.is_over, "ingest takes nothing"
            time.sleep(0.05)
    return {acked.id for acked in sender.acked}


def taken(receiver: Receiver) -> set[str]:
    """The ids that were answered with 204."""
    return {one.id for one in receiver.got["/crm"] if one.answered == 204}


def make_pipe(page: Page, url: str) -> None:
    """Fill in the form, with one step added on the way."""
    page.get_by_role("link", name="New pipe").click()
    page.get_by_label("Name of the pipe").fill("first orders")
    page.get_by_role("button", name="Add a step", exact=True).click()
    page.get_by_label("Path of step 1", exact=True).fill("order.total")
    page.get_by_label("New path of step 1", exact=True).fill("order.amount")
    page.get_by_label("URL of destination 1").fill(url)
    page.get_by_role("button", name="Make the pipe").click()


def see_it_delivered(page: Page) -> None:
    """The pipe's page after its first event: attempts, loss, shares."""
    page.get_by_role("link", name="To the pipe").click()
    expect(page.get_by_role("heading", name="first orders@1")).to_be_visible()
    attempt = page.locator("#attempts tbody tr").first
    expect(attempt).to_contain_text("delivered", timeout=ARRIVES_MS)
    expect(attempt).to_contain_text("204")
    expect(page.locator("#loss tfoot")).to_contain_text("1 minute")
    expect(page.locator("#pie tfoot")).to_contain_text("ingest to answer")
    expect(page.locator("[data-chart=pie] svg")).to_be_visible()


def find_the_cause(page: Page) -> None:
    """From the bell to the alert, the destination, what is held, and back."""
    page.get_by_role("link", name=BELL).click()
    expect(page.locator("#list")).to_contain_text("main: answered 401", timeout=TOLD_MS)
    page.locator("#list tbody th a", has_text="main: answered 401").click()
    expect(page.locator("#alert-now")).to_contain_text("401 and 403 speak of credentials")
    page.get_by_role("button", name="I am on it").click()
    expect(page.locator("#alert-now")).to_contain_text("acknowledged")
    page.get_by_role("link", name="Destination main").click()
    expect(page.locator("#state")).to_contain_text("suspended", timeout=TOLD_MS)
    page.get_by_role("link", name="Held", exact=True).first.click()
    expect(page.locator("#held tbody tr")).to_contain_text("Resume and release", timeout=TOLD_MS)
    page.get_by_role("link", name=BELL).click()
    page.locator("#list tbody th a", has_text="main: answered 401").click()


def see_nothing_left(page: Page) -> None:
    """The destination is well, and nothing of it waits anywhere."""
    page.get_by_role("link", name="Destination main").click()
    expect(page.locator("#state")).to_contain_text("active")
    page.get_by_role("link", name="Dead letters", exact=True).click()
    expect(page.locator("#heaps")).to_contain_text("No dead letter waits", timeout=TOLD_MS)
    page.get_by_role("link", name="Held", exact=True).first.click()
    expect(page.locator("#held")).to_contain_text("Nothing is held", timeout=TOLD_MS)


def test_a_newcomer_makes_a_pipe_sees_it_break_mends_it_and_gets_everything(
    whole_box: Box, chrome: Browser, receiver: Receiver, sample: dict[str, Any]
):
    allowed = Patience(FIVE_MINUTES_S)
    context = chrome.new_context()
    page, complaints = context.new_page(), Complaints()
    complaints.watch(page)
    page.goto(sample["sign_in_url"])  # the one address: it is printed, not typed
    row = page.locator("#pipes tbody tr", has_text="demo")
    expect(row).to_contain_text("live", timeout=LIVE_MS)
    expect(row).to_contain_text(re.compile(r"\d\s?m?s"), timeout=ARRIVES_MS)  # a lag: it moves

    make_pipe(page, receiver.url("/crm"))
    expect(page.get_by_role("heading", name="first orders is made")).to_be_visible()
    key, endpoint = page.locator("#shown-key").inner_text(), page.locator("#endpoint-url").inner_text()
    assert endpoint == whole_box.env["PENSTOCK_INGEST_URL"] + "/v1/events"
    expect(page.locator("#listening")).to_contain_text("Listening", timeout=LISTENS_MS)
    send_first(endpoint, key, ORDER)
    expect(page.locator("#listening")).to_contain_text("First event delivered", timeout=ARRIVES_MS)
    (first,) = receiver.got["/crm"]
    assert json.loads(first.body) == {"order": {"id": 4711, "amount": 129.9}}
    see_it_delivered(page)
    page.reload()
    assert key not in page.content()

    receiver.answers["/crm"] = 401  # it breaks
    sent = {first.id} | send_more(whole_box, key, 60)
    find_the_cause(page)
    page.get_by_role("button", name="I fixed it").click()  # it is not: the message is refused
    expect(page.locator("#alert-now")).to_contain_text("was not accepted", timeout=RELEASED_MS)
    receiver.answers["/crm"] = 204  # now it is
    page.get_by_role("button", name="I fixed it").click()
    expect(page.locator("#alert-now")).to_contain_text("resolved", timeout=RELEASED_MS)
    patience = Patience(60)
    while not sent <= taken(receiver):
        assert not patience.is_over, f"{len(sent - taken(receiver))} did not come"
        page.wait_for_timeout(200)
    see_nothing_left(page)
    assert taken(receiver) == sent
    assert not allowed.is_over
    context.close()
    assert not complaints.found, "\n".join(complaints.found)
