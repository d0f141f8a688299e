"""The live tail in a real browser: messages appear as they pass, a pause keeps its place, a filter applies."""

import http.client
import json
from contextlib import closing

import pytest
from playwright.sync_api import Browser, Page, expect

from loadgen.scripted import Receiver
from localbox.testing import ROOT, Box
from tests.e2e.conftest import LIVE_MS, said_by
from tests.e2e.look import Complaints, pictures, sign_in

pytestmark = pytest.mark.timeout(1_800)
PEEK = {"op": "peek", "name": "raw", "share": 1}
SHOWN_MS = 60_000


def send(box: Box, key: str, body: bytes) -> None:
    with closing(
        http.client.HTTPConnection("127.0.0.1", int(box.env["PENSTOCK_INGEST_PORT"]), timeout=15)
    ) as connection:
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        connection.request("POST", "/v1/events", body, headers)
        assert connection.getresponse().status == 202


def rows(page: Page) -> list[str]:
    return page.locator("#tail-rows code[data-slot=body]").all_inner_texts()


def test_messages_are_shown_as_they_pass(whole_box: Box, chrome: Browser, receiver: Receiver):
    steps = json.dumps([PEEK])
    scene = said_by(whole_box, "tests/e2e/scene.py", "pipe", "watched", receiver.url("/crm"), steps)
    base = whole_box.env["PENSTOCK_WEB_URL"]
    context = chrome.new_context(storage_state=sign_in(chrome, base, "alice", scene["password"]))
    page, complaints = context.new_page(), Complaints()
    complaints.watch(page)
    page.goto(f"{base}/pipes/{scene['pipe']}/")
    expect(page.locator("#pipe-head")).to_contain_text("live", timeout=LIVE_MS)

    page.get_by_role("link", name="Live tail").click()
    expect(page.locator("#tail-standing")).to_contain_text("Live.", timeout=SHOWN_MS)
    send(whole_box, scene["key"], b'{"n":1}')
    expect(page.locator("#tail-rows")).to_contain_text('{"n":1}', timeout=SHOWN_MS)

    page.get_by_role("button", name="Pause tail").click()
    other = context.new_page()
    complaints.watch(other)
    other.goto(page.url)
    expect(other.locator("#tail-standing")).to_contain_text("Live.", timeout=SHOWN_MS)
    send(whole_box, scene["key"], b'{"n":2}')
    expect(other.locator("#tail-rows")).to_contain_text('{"n":2}', timeout=SHOWN_MS)
    assert rows(page) == ['{"n":1}'], "a window that is not paused has shown the message already"
    other.close()
    page.get_by_role("button", name="Resume tail").click()
    expect(page.locator("#tail-rows")).to_contain_text('{"n":2}', timeout=SHOWN_MS)
    assert rows(page) == ['{"n":2}', '{"n":1}']

    page.get_by_label("Filter expression").fill("body.n > 1 && meta.step == 'raw'")
    page.get_by_role("button", name="Filter", exact=True).click()
    expect(page.locator("#tail-standing")).to_contain_text("Live.", timeout=SHOWN_MS)
    assert rows(page) == ['{"n":2}']
    send(whole_box, scene["key"], b'{"n":0}')
    send(whole_box, scene["key"], b'{"n":3}')
    expect(page.locator("#tail-rows")).to_contain_text('{"n":3}', timeout=SHOWN_MS)
    assert rows(page) == ['{"n":3}', '{"n":2}']
    pictures(page, complaints, ROOT / "var" / "look", "live-tail")

    page.locator("#tail-rows a").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("watched")
    expect(page.locator("main")).to_contain_text('"n": 3')
    context.close()
    assert complaints.found == []
