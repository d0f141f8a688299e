"""Take a picture of every page at desk and phone width, in light and dark, and fail on what a browser complains about.

    python tests/e2e/look.py http://127.0.0.1:8800 alice <password> --into var/look

Needs a running server with some data in it; reads only.
"""

import argparse
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, StorageState, sync_playwright

Theme = Literal["light", "dark"]
SIZES = {"desk": (1440, 900), "phone": (390, 844)}
THEMES: tuple[Theme, ...] = ("light", "dark")
CHROMIUM = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
PIPE_TABS = {
    "overview": "",
    "attempts": "attempts/",
    "revisions": "revisions/",
    "settings": "settings/",
    "edit": "edit/",
    "close": "close/",
}


class Complaints:
    """What the browser held against a page: console errors, exceptions, and a page wider than its window."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def watch(self, page: Page) -> None:
        """Collect from now on."""
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.found.append(f"{page.url}: {error}"))

    def measure(self, page: Page) -> None:
        """A page that scrolls sideways is a complaint."""
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if wide > 0:
            self.found.append(f"{page.url}: {wide} px wider than the window")

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.found.append(f"{message.location.get('url', '')}: {message.text}")


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's Chromium."""
    executable = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM)
        try:
            yield browser
        finally:
            browser.close()


def sign_in(browser: Browser, base: str, name: str, password: str) -> StorageState:
    """Sign in by password; the session as other contexts can use it."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{base}/sign-in/")
    page.fill("input[name=username]", name)
    page.fill("input[name=password]", password)
    page.click("button:has-text('Sign in')")
    page.wait_for_url(f"{base}/")
    state = context.storage_state()
    context.close()
    return state


def pages_of(context: BrowserContext, base: str, pipe: str) -> dict[str, str]:
    """Every page there is to see: home, the forms, and the tabs of the pipes with that word in their name."""
    page = context.new_page()
    page.goto(f"{base}/?q={pipe}")
    links = page.eval_on_selector_all("#pipes th a", "links => links.map(one => [one.textContent, one.href])")
    page.close()
    found = {"home": f"{base}/", "new": f"{base}/pipes/new/", "new-json": f"{base}/pipes/new/?mode=json"}
    for name, href in links:
        slug = "".join(c if c.isalnum() else "_" for c in name)
        for tab, path in PIPE_TABS.items():
            found[f"{slug}-{tab}"] = href + path
    return found | {"missing": f"{base}/pipes/none/"}


def look(
    browser: Browser, *, base: str, session: StorageState, into: Path, only: str = "", pipe: str = ""
) -> list[str]:
    """Take the pictures; returns the complaints."""
    into.mkdir(parents=True, exist_ok=True)
    complaints = Complaints()
    for theme in THEMES:
        context = browser.new_context(color_scheme=theme, storage_state=session)
        for title, url in pages_of(context, base, pipe).items():
            if only in title:
                _picture(context, complaints, url, into, f"{title}-{theme}")
        context.close()
    return [one for one in complaints.found if "/pipes/none/" not in one]  # the 404 that was asked for


def _picture(context: BrowserContext, complaints: Complaints, url: str, into: Path, title: str) -> None:
    for size, (width, height) in SIZES.items():
        page = context.new_page()
        complaints.watch(page)
        page.set_viewport_size({"width": width, "height": height})
        page.goto(url, wait_until="networkidle")
        complaints.measure(page)
        page.screenshot(path=into / f"{title}-{size}.png", full_page=True)
        page.close()


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base")
    parser.add_argument("name")
    parser.add_argument("password")
    parser.add_argument("--into", type=Path, default=Path("var/look"))
    parser.add_argument("--only", default="", help="part of a page's title")
    parser.add_argument("--pipe", default="", help="part of a pipe's name")
    asked = parser.parse_args()
    base = asked.base.rstrip("/")
    with chromium() as browser:
        session = sign_in(browser, base, asked.name, asked.password)
        found = look(browser, base=base, session=session, into=asked.into, only=asked.only, pipe=asked.pipe)
    sys.stdout.write("".join(f"{one}\n" for one in found) or "no complaints\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
