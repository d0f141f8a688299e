"""A page refreshes by one request an interval, and leaves what its viewer has opened, focused or scrolled."""

import re
import time
from itertools import pairwise
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from localbox.testing import Box
from tests.e2e.conftest import LIVE_MS
from tests.e2e.test_keyboard_and_theme import sign_in_link

INTERVAL_MS: Final = 4_000
REFRESHES: Final = 3


def opened(chrome: Browser, box: Box) -> Page:
    page = chrome.new_context(viewport={"width": 1440, "height": 700}).new_page()
    page.goto(sign_in_link(box))
    return page


def refreshes(page: Page) -> list[tuple[float, Request]]:
    """Return the next requests of the page, each with its time in ms."""
    seen: list[tuple[float, Request]] = []
    page.on("request", lambda request: seen.append((time.monotonic() * 1_000, request)))
    while len(seen) < REFRESHES:
        with page.expect_request(re.compile("part=")):
            pass
    return seen


def parts_of(request: Request) -> set[str]:
    return set(parse_qs(urlsplit(request.url).query)["part"][0].split(","))


@pytest.mark.parametrize("which", ["home", "pipe"])
def test_page_makes_one_request_an_interval(chrome: Browser, whole_box: Box, sample: dict[str, Any], which: str):
    page = opened(chrome, whole_box)
    if which == "pipe":
        page.goto(f"{whole_box.env['PENSTOCK_WEB_URL']}/pipes/{sample['pipe']}/")
        expect(page.locator("#flow")).to_be_visible()
        # The block that waits for the first event ends its refresh once that is delivered.
        expect(page.locator("#listening[data-live]")).to_have_count(0, timeout=LIVE_MS)
    live = page.locator("[data-live]").count()
    assert live >= (3 if which == "home" else 9)
    seen = refreshes(page)
    assert {urlsplit(request.url).path for _, request in seen} == {urlsplit(page.url).path}
    assert [len(parts_of(request)) for _, request in seen] == [live] * REFRESHES, "each has all live blocks"
    assert all(after - before > INTERVAL_MS / 2 for (before, _), (after, _) in pairwise(seen))
    page.context.close()


def test_refresh_leaves_focus_scroll_position_and_open_menus(chrome: Browser, whole_box: Box, sample: dict[str, Any]):
    page = opened(chrome, whole_box)
    page.goto(f"{whole_box.env['PENSTOCK_WEB_URL']}/pipes/{sample['pipe']}/")
    expect(page.locator("#loss tbody tr").first).to_be_visible(timeout=LIVE_MS)
    page.get_by_text("Show as table").first.click()
    page.locator("summary[aria-label^=Account]").click()
    page.locator("#plots-sheet").evaluate("sheet => { sheet.scrollTop = 150; }")
    page.locator("#search").evaluate("field => { field.focus({ preventScroll: true }); }")
    page.keyboard.type("ord-1")
    page.evaluate("window.scrollTo({ top: 240, behavior: 'instant' })")
    page.evaluate("window.kept = document.querySelector('#flow')")
    for _ in range(2):
        page.locator("#flow dt").first.evaluate("name => { name.textContent = 'stale'; }")
        expect(page.locator("#flow dt").first).to_have_text("In / s")
    assert page.evaluate("window.kept === document.querySelector('#flow') && window.kept.isConnected")
    expect(page.locator("#search")).to_be_focused()
    expect(page.locator("#search")).to_have_value("ord-1")
    assert page.evaluate("window.scrollY") == 240
    assert page.locator("#plots-sheet").evaluate("sheet => sheet.scrollTop") == 150
    expect(page.locator("details.menu", has=page.locator("summary[aria-label^=Account]"))).to_have_attribute("open", "")
    expect(page.locator("details", has=page.locator("#plots"))).to_have_attribute("open", "")
    page.context.close()


def test_refresh_keeps_the_focus_on_a_row_of_a_live_block(chrome: Browser, whole_box: Box, sample: dict[str, Any]):
    page = opened(chrome, whole_box)
    link = page.locator(f"#pipe-{sample['pipe']} th a")
    expect(link).to_be_visible()
    link.focus()
    heading = page.locator("#pipes thead th").nth(1)
    heading.evaluate("name => { name.textContent = 'stale'; }")
    expect(heading).to_have_text("State")
    expect(link).to_be_focused()
    page.context.close()
