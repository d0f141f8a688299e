"""The first five minutes, in a real browser on the whole box: sign in, make a pipe, send, see it delivered."""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from playwright.sync_api import Browser, Page, expect

from localbox.testing import ROOT, Box
from tests.e2e.look import Complaints
from tests.rig.receiver import Receiver

LIVE_MS = 90_000
ARRIVES_MS = 30_000
pytestmark = pytest.mark.timeout(600)


def sign_in_link(box: Box) -> str:
    """What the box prints when it starts, printed again: each link works once."""
    command = [sys.executable, "manage.py", "bootstrap"]
    printed = subprocess.run(command, cwd=ROOT, env=box.env, check=True, capture_output=True, text=True).stdout
    return str(json.loads(printed.splitlines()[-1])["sign_in_url"])


def send(endpoint: str, key: str, event: dict[str, object]) -> int:
    """POST one event as the page's snippets do; the status."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(endpoint, json.dumps(event).encode(), headers)  # noqa: S310 (the page's own)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code


def make_pipe(page: Page, url: str) -> None:
    """Fill in the form, with one step added on the way."""
    page.get_by_role("link", name="New pipe").click()
    page.get_by_label("Name of the pipe").fill("first orders")
    page.get_by_role("button", name="Add a step", exact=True).click()
    page.get_by_label("Path of step 1", exact=True).fill("order.total")
    page.get_by_label("New path of step 1", exact=True).fill("order.amount")
    page.get_by_label("URL of destination 1").fill(url)
    page.get_by_role("button", name="Make the pipe").click()


def test_a_new_user_signs_in_makes_a_pipe_sends_an_event_and_sees_it_delivered(
    whole_box: Box, chrome: Browser, receiver: Receiver
):
    context = chrome.new_context()
    page, complaints = context.new_page(), Complaints()
    complaints.watch(page)
    page.goto(sign_in_link(whole_box))
    make_pipe(page, receiver.url("/crm"))

    expect(page.get_by_role("heading", name="first orders is made")).to_be_visible()
    key, endpoint = page.locator("#shown-key").inner_text(), page.locator("#endpoint-url").inner_text()
    assert endpoint == whole_box.env["PENSTOCK_INGEST_URL"] + "/v1/events"
    expect(page.locator("#listening")).to_contain_text("Listening", timeout=LIVE_MS)

    deadline = time.monotonic() + 20
    while (status := send(endpoint, key, {"order": {"id": 4711, "total": 129.9}})) == 401:
        assert time.monotonic() < deadline, "the key is not known to ingest"
        time.sleep(0.2)
    assert status == 202
    expect(page.locator("#listening")).to_contain_text("First event delivered", timeout=ARRIVES_MS)
    [received] = receiver.got["/crm"]
    assert json.loads(received.body) == {"order": {"id": 4711, "amount": 129.9}}

    page.get_by_role("link", name="To the pipe").click()
    expect(page.get_by_role("heading", name="first orders@1")).to_be_visible()
    attempt = page.locator("#attempts tbody tr").first
    expect(attempt).to_contain_text("delivered", timeout=ARRIVES_MS)
    expect(attempt).to_contain_text("204")
    expect(page.locator("#loss tfoot")).to_contain_text("1 minute")
    expect(page.locator("#pie tfoot")).to_contain_text("end to end")
    expect(page.locator("[data-chart=pie] svg")).to_be_visible()
    page.reload()
    assert key not in page.content()

    context.close()
    assert complaints.found == []


def test_the_console_is_used_by_keyboard(whole_box: Box, chrome: Browser):
    context = chrome.new_context()
    page = context.new_page()
    page.goto(whole_box.env["PENSTOCK_WEB_URL"] + "/sign-in/")
    expect(page.get_by_label("User name")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Password")).to_be_focused()
    page.goto(sign_in_link(whole_box))
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
    page.get_by_role("link", name="New pipe").press("Enter")
    expect(page.get_by_role("heading", name="New pipe")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("h")
    expect(page.get_by_role("heading", name="Pipes")).to_be_visible()
    context.close()


def test_the_theme_switch_is_kept_and_needs_no_reload(whole_box: Box, chrome: Browser):
    context = chrome.new_context(color_scheme="light")
    page = context.new_page()
    page.goto(sign_in_link(whole_box))
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    expect(page.get_by_role("button", name="Light")).to_be_visible()
    context.close()
