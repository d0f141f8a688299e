"""Finding one's way in the console: the side bar, the tabs of a pipe at each width, and the page of an error."""

from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from localbox.testing import Box
from tests.e2e.conftest import said_by
from tests.e2e.look import Complaints, sign_in

RECEIVER = "http://127.0.0.1:8999/crm"  # nothing listens, and nothing is sent
ROWS = "[...document.querySelectorAll('.tabs a')].map(tab => tab.getBoundingClientRect().top)"
# Position of the current tab in the window, and the excess width of the tabs over their bar.
CURRENT = """() => {
    const bar = document.querySelector('.tabs'), tab = bar.querySelector('[aria-current]').getBoundingClientRect();
    return [tab.left >= 0 && tab.right <= window.innerWidth, bar.scrollWidth - bar.clientWidth];
}"""


@pytest.fixture(scope="module")
def pipe(box: Box) -> dict[str, Any]:
    return said_by(box, "tests/e2e/scene.py", "pipe", "found", RECEIVER)


def opened(chrome: Browser, box: Box, pipe: dict[str, Any], width: int) -> BrowserContext:
    session = sign_in(chrome, box.env["PENSTOCK_WEB_URL"], "alice", pipe["password"])
    return chrome.new_context(storage_state=session, viewport={"width": width, "height": 800})


@pytest.mark.parametrize(("width", "is_whole"), [(1440, True), (1280, True), (1024, False), (390, False)])
def test_tabs_of_a_pipe_are_one_row_and_the_current_one_is_in_view(
    box: Box, chrome: Browser, pipe: dict[str, Any], width: int, is_whole: bool
):
    context, complaints = opened(chrome, box, pipe, width), Complaints()
    page = context.new_page()
    complaints.watch(page)
    for path in ("", "settings/"):
        page.goto(f"{box.env['PENSTOCK_WEB_URL']}/pipes/{pipe['pipe']}/{path}")
        assert len(set(page.evaluate(ROWS))) == 1
        is_in_view, rest_px = page.evaluate(CURRENT)
        assert is_in_view
        assert rest_px == 0 or not is_whole
        complaints.measure(page)
        complaints.judge(page)
    context.close()
    assert complaints.found == []


def test_side_bar_marks_pipes_on_their_page_and_below_it(box: Box, chrome: Browser, pipe: dict[str, Any]):
    context = opened(chrome, box, pipe, 1280)
    page = context.new_page()
    page.goto(box.env["PENSTOCK_WEB_URL"])
    rail = page.get_by_role("navigation", name="Console")
    rail.get_by_role("link", name="Pipes").click()
    expect(page.get_by_role("heading", name="Pipes")).to_be_visible()
    expect(rail.get_by_role("link", name="Pipes")).to_have_attribute("aria-current", "page")
    page.get_by_role("main").get_by_role("link", name="found", exact=True).click()
    expect(page.get_by_role("heading", name="found")).to_be_visible()
    expect(rail.get_by_role("link", name="Pipes")).to_have_attribute("aria-current", "true")
    context.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_type_of_an_error_is_a_page_for_a_visitor_who_is_not_signed_in(box: Box, chrome: Browser, width: int):
    context, complaints = chrome.new_context(viewport={"width": width, "height": 800}), Complaints()
    problem = context.request.get(f"{box.env['PENSTOCK_WEB_URL']}/api/v1/pipes/").json()
    page = context.new_page()
    complaints.watch(page)
    page.goto(problem["type"])
    expect(page.get_by_role("heading", name=problem["code"], exact=True)).to_be_visible()
    expect(page.get_by_role("heading", name=problem["title"])).to_be_visible()
    complaints.measure(page)
    complaints.judge(page)
    page.get_by_role("link", name="All errors").click()
    expect(page.get_by_role("link", name="signature-stale")).to_be_visible()
    complaints.measure(page)
    complaints.judge(page)
    context.close()
    assert complaints.found == []


def test_preset_is_added_in_the_editor_with_its_request_in_view(box: Box, chrome: Browser, pipe: dict[str, Any]):
    context, complaints = opened(chrome, box, pipe, 1280), Complaints()
    page = context.new_page()
    complaints.watch(page)
    page.goto(f"{box.env['PENSTOCK_WEB_URL']}/pipes/new/")
    page.get_by_label("Preset", exact=True).select_option("Datadog, logs")
    page.get_by_role("button", name="Add destination").click()
    expect(page.get_by_role("status").filter(has_text="Datadog, logs.")).to_contain_text("enter the API key")
    expect(page.locator("#destination-0")).to_contain_text("Also set: authentication (header DD-API-KEY)")
    result = page.locator("#out-destination-0")
    expect(result).to_contain_text("POST https://http-intake.logs.datadoghq.com/api/v2/logs")
    expect(result).to_contain_text('"ddsource"')
    body = page.get_by_label("Body of destination 1", exact=True)
    body.fill('{"message": body.id}')
    expect(result).to_contain_text('"message"')
    expect(result).not_to_contain_text("ddsource")
    page.get_by_label("Format of destination 1", exact=True).select_option("As received")
    expect(page.locator("#destination-0-format-error")).to_contain_text("a template with a body")
    complaints.judge(page)
    context.close()
    assert complaints.found == []
