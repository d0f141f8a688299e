"""The first five minutes by visible links and buttons alone: a start, a test request with its response, a plan, a new
pipe, its first event and that event's journey, hop by hop.
"""

import re
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from loadgen.scripted import Receiver, status
from localbox.testing import ROOT, Box
from tests.e2e.conftest import LIVE_MS
from tests.e2e.editing import send_first
from tests.e2e.look import Complaints, pictures
from tests.e2e.test_first_incident import ARRIVES_MS, FIVE_MINUTES_S, LISTENS_MS
from tests.support.patience import Patience

pytestmark = pytest.mark.timeout(900)
INTO: Final = ROOT / "var" / "look"
ANSWERED_MS: Final = 60_000
ORDER: Final = {"id": "ord-1", "created_at": "2026-03-14T09:26:53Z", "customer": "c-1", "total": 2_000.0}
HOPS: Final = ["ingest", "normalize", "route"]  # and these on the path to one destination
HOPS_OF_ONE: Final = ["transform", "processed", "delivered"]


def sign_in_and_see_it_move(page: Page, url: str) -> None:
    """Open the printed sign-in link, without typing; then home shows a sample pipe with a lag."""
    page.goto(url)
    row = page.locator("#pipes tbody tr", has_text="demo")
    expect(row).to_contain_text("live", timeout=LIVE_MS)
    expect(row).to_contain_text(re.compile(r"\d\s?m?s"), timeout=ARRIVES_MS)


def reload_until(page: Page, where: str, words: str, within_ms: int) -> None:
    """Reload the page until it shows the text, as users without JavaScript do."""
    patience = Patience(within_ms / 1_000)
    while words not in page.locator(where).first.inner_text():
        assert not patience.is_over, f"{words!r} is not shown"
        page.wait_for_timeout(200)
        page.reload()


def stage_of(page: Page, destination: str) -> Locator:
    """Return the editor's section about a destination."""
    return page.get_by_role("group").filter(has=page.get_by_role("heading", name=destination, exact=True))


def use_echo(page: Page, box: Box, destination: str, number: int) -> None:
    """Fill in our echo endpoint and wait until it is shown: the buttons are redrawn with it."""
    page.get_by_role("button", name=f"Use echo endpoint for {destination}").click()
    echo = box.env["PENSTOCK_ECHO_URL"]
    expect(page.get_by_label(f"URL of destination {number}", exact=True)).to_have_value(echo)


def try_destination(page: Page, destination: str, answer: str) -> Locator:
    """Send a test request and wait for the response."""
    page.get_by_role("button", name=f"Send test request to {destination}").click()
    stage = stage_of(page, destination)
    expect(stage.locator(".tried")).to_contain_text(answer, timeout=ANSWERED_MS)
    return stage


def see_its_hops(page: Page) -> None:
    """Open the message from its attempt and check each hop in order."""
    page.get_by_role("link", name="Go to pipe").click()
    attempt = page.locator("#attempts tbody tr").first
    expect(attempt).to_contain_text("delivered", timeout=ARRIVES_MS)
    attempt.locator("td a").first.click()
    expect(page.locator("#journey")).to_contain_text("delivered to all 2", timeout=ARRIVES_MS)
    way = page.locator(".way").first.locator(".way-what > strong")
    assert way.all_inner_texts()[1:] == HOPS  # the first is the source's own clock
    leg = page.locator("section.card", has=page.get_by_role("heading", name="books", exact=True))
    for hop in HOPS_OF_ONE:
        expect(leg.locator(".way")).to_contain_text(hop)


def test_newcomer_tests_plans_creates_and_follows_the_first_event_within_five_minutes(
    whole_box: Box, chrome: Browser, receiver: Receiver, sample: dict[str, Any]
):
    patience = Patience(FIVE_MINUTES_S)
    page, complaints = chrome.new_context().new_page(), Complaints()
    complaints.watch(page)
    sign_in_and_see_it_move(page, sample["sign_in_url"])
    page.get_by_role("link", name="New pipe").click()
    page.get_by_role("link", name="Route large orders").click()
    page.get_by_label("Pipe name").fill("five minutes")
    expect(page.locator("#ran")).to_contain_text("2 requests would be sent")
    page.get_by_label("URL of destination 1").fill(receiver.url("/books"))
    use_echo(page, whole_box, "sales", 2)

    receiver.answers["/books"] = 401
    stage = try_destination(page, "books", "Returned 401")
    expect(stage.locator(".tried")).to_contain_text("this failure is final")
    receiver.answers["/books"] = status(200, body=b"thank you")
    expect(try_destination(page, "books", "Returned 200").locator(".tried")).to_contain_text("thank you")
    expect(try_destination(page, "sales", "Returned 200").locator(".tried")).to_contain_text("Nothing is stored")
    assert {one.headers["penstock-test"] for one in receiver.got["/books"]} == {"1"}

    page.get_by_role("button", name="Preview plan").click()
    expect(page.get_by_role("heading", name="Plan: five minutes")).to_be_visible()
    expect(page.locator("main")).to_contain_text("c1, which has the fewest pipes")
    if (address := page.get_by_label("Send alerts to this e-mail address")).count():  # if no channel exists yet
        address.fill("ops@example.com")
    page.get_by_role("button", name="Create pipe").click()
    expect(page.get_by_role("heading", name="five minutes created")).to_be_visible()
    key, endpoint = page.locator("#shown-key").inner_text(), page.locator("#endpoint-url").inner_text()
    expect(page.locator("#listening")).to_contain_text("Listening", timeout=LISTENS_MS)
    send_first(endpoint, key, ORDER)
    expect(page.locator("#listening")).to_contain_text("First event delivered", timeout=ARRIVES_MS)
    see_its_hops(page)
    assert not patience.is_over
    page.context.close()
    assert not complaints.found, "\n".join(complaints.found)


@pytest.mark.long
def test_pages_of_the_first_five_minutes_are_clean(
    whole_box: Box, chrome: Browser, receiver: Receiver, sample: dict[str, Any]
):
    page, complaints = chrome.new_context().new_page(), Complaints()
    complaints.watch(page)
    sign_in_and_see_it_move(page, sample["sign_in_url"])
    page.get_by_role("link", name="New pipe").click()
    page.get_by_role("link", name="Route large orders").click()
    page.get_by_label("Pipe name").fill("looked at")
    receiver.answers["/books"] = status(401, body=b'{"error": "no such <key>"}')
    page.get_by_label("URL of destination 1").fill(receiver.url("/books"))
    try_destination(page, "books", "Returned 401")
    use_echo(page, whole_box, "sales", 2)
    try_destination(page, "sales", "Returned 200")
    pictures(page, complaints, INTO, "new-tried")
    page.get_by_role("button", name="Preview plan").click()
    expect(page.get_by_role("heading", name="Plan: looked at")).to_be_visible()
    pictures(page, complaints, INTO, "plan")
    page.get_by_role("button", name="Back to editing").click()
    expect(page.get_by_label("URL of destination 1")).to_have_value(receiver.url("/books"))
    expect(stage_of(page, "books").locator(".tried")).to_contain_text("Returned 401")
    page.context.close()
    assert not complaints.found, "\n".join(complaints.found)


def test_first_five_minutes_work_by_forms_without_javascript(
    whole_box: Box, chrome: Browser, receiver: Receiver, sample: dict[str, Any]
):
    page = chrome.new_context(java_script_enabled=False).new_page()
    page.goto(sample["sign_in_url"])
    reload_until(page, "#pipes tbody tr:has-text('demo')", "live", LIVE_MS)
    page.get_by_role("link", name="New pipe").click()
    page.get_by_role("link", name="Failed builds").click()
    page.get_by_label("Pipe name").fill("without a script")
    use_echo(page, whole_box, "chat", 1)
    page.get_by_role("button", name="Send test request to chat").click()
    refresh, result = page.get_by_role("link", name="Refresh"), page.locator(".tried", has_text="Returned 200")
    expect(refresh.or_(result)).to_be_visible()  # the response may have arrived before the page was rendered
    if refresh.count():
        with page.expect_popup() as opened:
            refresh.click()
        reload_until(opened.value, ".tried", "Returned 200", ANSWERED_MS)
    page.get_by_role("button", name="Preview plan").click()
    page.get_by_role("button", name="Create pipe").click()
    expect(page.get_by_role("heading", name="without a script created")).to_be_visible()
    page.context.close()
