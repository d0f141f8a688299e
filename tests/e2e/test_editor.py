"""The editor in a real browser: results while typing, rows moved by keyboard, and an equal revision."""

from collections.abc import Callable

from playwright.sync_api import Browser, Locator, Page, Route, expect

from localbox.testing import Box
from tests.e2e.conftest import said_by
from tests.e2e.editing import add_step
from tests.e2e.look import Complaints, sign_in

VALUE = "Value (JSON or text)"
# Types into the URL of the first destination as soon as the form is redrawn.
TYPE_AT_SWAP = """text => document.addEventListener("htmx:afterSwap", () => {
    const field = document.querySelector("[aria-label='URL of destination 1']");
    field.value = text;
    field.dispatchEvent(new Event("input", {bubbles: true}));
}, {once: true})"""
RECEIVER = "http://127.0.0.1:8999/crm"  # nothing listens, and nothing is sent


def test_pipe_is_edited_by_keyboard_with_its_results_in_view(whole_box: Box, chrome: Browser):
    made, complaints = said_by(whole_box, "tests/e2e/scene.py", "pipe", "edited", RECEIVER), Complaints()
    base = whole_box.env["PENSTOCK_WEB_URL"]
    context = chrome.new_context(storage_state=sign_in(chrome, base, "alice", made["password"]))
    page = context.new_page()
    complaints.watch(page)
    page.goto(f"{base}/pipes/{made['pipe']}/edit/")
    add_step(page, 1, "set", "first", VALUE)
    add_step(page, 2, "set", "second", VALUE)
    expect(page.locator("#out-normalize .new").last).to_contain_text('"second"')

    page.get_by_label("Path of step 2", exact=True).press("Alt+ArrowUp")
    expect(page.get_by_role("button", name="Move step 1 down")).to_be_focused()
    expect(page.get_by_label("Path of step 1", exact=True)).to_have_value("second")

    page.get_by_role("button", name="Add rule").click()
    when = page.get_by_label("When of rule 1", exact=True)
    page.get_by_role("group", name="Send to", exact=True).get_by_label("crm", exact=True).check()
    when.fill("body.order.total >")
    expect(page.locator("#rule-0-when-error")).to_contain_text("line 1, column 19: needs a value, got the end")
    expect(when).to_be_focused()
    expect(when).to_have_attribute("aria-invalid", "true")
    when.press_sequentially(" 100.0")
    expect(page.locator("#out-route")).to_contain_text("to crm")
    expect(when).to_have_attribute("aria-invalid", "false")
    expect(page.locator("#out-destination-0")).to_contain_text(f"POST {RECEIVER}")

    page.get_by_role("button", name="Publish revision 2").click()
    expect(page.get_by_role("heading", name="edited")).to_be_visible()
    page.goto(f"{base}/pipes/{made['pipe']}/edit/")
    expect(page.get_by_label("Path of step 1", exact=True)).to_have_value("second")
    expect(page.get_by_label("When of rule 1", exact=True)).to_have_value("body.order.total > 100.0")
    context.close()
    assert complaints.found == []


def while_it_is_answered(page: Page, click: Callable[[], object], field: Locator, text: str) -> None:
    """Type into a field after the request is sent and before the server receives it."""

    def type_meanwhile(route: Route) -> None:
        field.fill(text)
        route.continue_()

    page.route("**/edit/", type_meanwhile, times=1)
    click()


def test_input_typed_while_the_form_is_redrawn_is_kept(whole_box: Box, chrome: Browser):
    steps = '[{"op": "set", "path": "first", "value": 1}]'
    made = said_by(whole_box, "tests/e2e/scene.py", "pipe", "typed-into", RECEIVER, steps)
    base, complaints = whole_box.env["PENSTOCK_WEB_URL"], Complaints()
    context = chrome.new_context(storage_state=sign_in(chrome, base, "alice", made["password"]))
    page = context.new_page()
    complaints.watch(page)
    page.goto(f"{base}/pipes/{made['pipe']}/edit/")
    path, url = page.get_by_label("Path of step 1", exact=True), page.get_by_label("URL of destination 1", exact=True)
    operation = page.get_by_label("Operation of step 1", exact=True)

    while_it_is_answered(page, lambda: operation.select_option("remove"), url, f"{RECEIVER}/2")
    expect(page.get_by_label(f"{VALUE} of step 1", exact=True)).to_have_count(0)
    expect(operation).to_have_value("remove")
    expect(url).to_have_value(f"{RECEIVER}/2")
    expect(url).to_be_focused()
    expect(page.locator("#out-destination-0")).to_contain_text(f"POST {RECEIVER}/2")

    page.evaluate(TYPE_AT_SWAP, f"{RECEIVER}/3")
    page.get_by_role("button", name="Add step", exact=True).click()
    expect(page.locator("#out-destination-0")).to_contain_text(f"POST {RECEIVER}/3")
    page.get_by_role("button", name="Remove step 2", exact=True).click()
    expect(page.get_by_label("Operation of step 2", exact=True)).to_have_count(0)

    while_it_is_answered(page, page.get_by_role("button", name="Add step", exact=True).click, path, "second")
    expect(page.get_by_label("Operation of step 2", exact=True)).to_be_visible()
    expect(path).to_have_value("second")
    expect(path).to_be_focused()
    expect(page.get_by_label("Operation of step 3", exact=True)).to_have_count(0)
    context.close()
    assert complaints.found == []
