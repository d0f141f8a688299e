"""What users expect of a console: keyboard shortcuts, and a theme that persists."""

from playwright.sync_api import Browser, expect

from localbox.testing import Box
from tests.e2e.conftest import said_by


def sign_in_link(box: Box) -> str:
    """Return a new sign-in link as the box prints it at its start; each link works once."""
    return str(said_by(box, "manage.py", "bootstrap")["sign_in_url"])


def test_console_is_usable_by_keyboard(whole_box: Box, chrome: Browser):
    said_by(whole_box, "tests/e2e/scene.py", "pipe", "by-keys", "http://127.0.0.1:8999/crm")  # nothing is sent there
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
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(keys).to_contain_text("new pipe")
    expect(keys).to_contain_text("look-up tables")
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    page.keyboard.press("j")
    expect(page.locator("main tbody th a").first).to_be_focused()
    page.get_by_role("link", name="by-keys", exact=True).first.press("Enter")
    expect(page.get_by_role("link", name="Live tail")).to_be_visible()
    page.keyboard.press("p")
    page.keyboard.press("l")
    expect(page.get_by_role("heading", name="Live messages")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("h")
    expect(page.get_by_role("heading", name="Pipes")).to_be_visible()
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name="New pipe")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("h")
    expect(page.get_by_role("heading", name="Pipes")).to_be_visible()
    context.close()


def test_palette_opens_pages_and_pipes_by_name(whole_box: Box, chrome: Browser):
    said_by(whole_box, "tests/e2e/scene.py", "pipe", "by-palette", "http://127.0.0.1:8999/crm")  # nothing is sent there
    context = chrome.new_context()
    page = context.new_page()
    page.goto(sign_in_link(whole_box))
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Go to a page or pipe")
    expect(palette.get_by_label("Name of a page or pipe")).to_be_focused()
    expect(palette.get_by_role("link", name="Alerts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(palette).to_be_hidden()
    page.get_by_role("navigation", name="Console").get_by_role("link", name="Go to").click()
    page.keyboard.type("by-palette")
    expect(palette.locator('[data-targets="by-palette"]')).to_be_visible()  # not the list of a part of the name
    expect(palette.get_by_role("link")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    expect(palette.get_by_role("link", name="by-palette")).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="by-palette@")).to_be_visible()
    context.close()


def test_menu_of_a_narrow_window_works_without_a_script(whole_box: Box, chrome: Browser):
    context = chrome.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.goto(sign_in_link(whole_box))
    session = context.storage_state()
    context.close()
    context = chrome.new_context(
        viewport={"width": 390, "height": 844}, storage_state=session, java_script_enabled=False
    )
    page = context.new_page()
    page.goto(whole_box.env["PENSTOCK_WEB_URL"])
    expect(page.get_by_role("navigation", name="Console")).to_be_hidden()
    page.get_by_text("Menu", exact=False).first.click()
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Usage", exact=True).click()
    expect(page.get_by_role("heading", name="Usage", exact=True)).to_be_visible()
    context.close()


def test_single_key_shortcuts_can_be_turned_off(whole_box: Box, chrome: Browser):
    context = chrome.new_context()
    page = context.new_page()
    page.goto(sign_in_link(whole_box))
    page.get_by_role("button", name="Keyboard shortcuts").click()
    page.get_by_label("Turn off keyboard shortcuts in this browser").check()
    page.get_by_role("button", name="Close").click()
    page.reload()
    page.keyboard.press("n")
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Pipes")).to_be_visible()
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_hidden()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    expect(page.get_by_label("Turn off keyboard shortcuts in this browser")).to_be_checked()
    context.close()


def test_theme_switch_persists_and_needs_no_reload(whole_box: Box, chrome: Browser):
    context = chrome.new_context(color_scheme="light")
    page = context.new_page()
    page.goto(sign_in_link(whole_box))
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")
    expect(page.get_by_role("button", name="Light")).to_be_visible()
    context.close()
