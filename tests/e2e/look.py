"""Take a screenshot of every page at desktop and phone width, in light and dark, and fail on any complaint of the
browser or axe.

    python tests/e2e/look.py http://127.0.0.1:8800 alice <password> --into var/look

Needs a running server with some data; reads only.
"""

import argparse
import os
import random
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, StorageState, sync_playwright

from tests.support.chromium import find_chromium

Theme = Literal["light", "dark"]
Corner = tuple[Theme, str]  # theme and size
Visits = Mapping[Corner, Mapping[str, str]]  # pages, as URL by title, to open in each corner
SIZES: Final = {"desk": (1440, 900), "phone": (390, 844)}
THEMES: Final[tuple[Theme, ...]] = ("light", "dark")
EVERY: Final[tuple[Corner, ...]] = tuple((theme, size) for theme in THEMES for size in SIZES)
DIAGONAL: Final[tuple[Corner, ...]] = (("light", "desk"), ("dark", "phone"))
AT_ONCE: Final = 2
CHROMIUM: Final = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
AXE: Final = Path(__file__).parents[1] / "vendor" / "axe-core-4.14.1" / "axe.min.js"
PATIENT_MS: Final = 120_000  # for an action or a screenshot, on a busy machine
WCAG: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


class Complaints:
    """Complaints about a page: console errors, exceptions, a page wider than its window, axe's violations."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._asked_for: set[str] = set()

    def watch(self, page: Page) -> None:
        """Collect the page's console errors and exceptions from now on."""
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.found.append(f"{page.url}: {error}"))

    def expect_error(self, url: str) -> None:
        """Ignore the console error of a URL that the test requests because it answers 4xx or 5xx."""
        self._asked_for.add(url)

    def measure(self, page: Page) -> None:
        """Record a complaint if the page scrolls sideways."""
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if wide > 0:
            self.found.append(f"{page.url}: {wide} px wider than the window")

    def judge(self, page: Page, where: str = "") -> None:
        """Record every violation of WCAG 2.2 A and AA that axe finds."""
        page.evaluate(AXE.read_text())  # not as a script tag, which the content policy forbids
        answer = page.evaluate("tags => axe.run({runOnly: tags})", WCAG)
        self.found.extend(f"{page.url} {where}: {said}" for one in answer["violations"] for said in _said(one))

    def _console(self, message: ConsoleMessage) -> None:
        where = message.location.get("url", "")
        if message.type in ("error", "warning") and where not in self._asked_for:
            self.found.append(f"{where}: {message.text}")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Open the system's Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM)
        open_context = browser.new_context

        def new_context(**options: Any) -> BrowserContext:
            context = open_context(**options)
            context.set_default_timeout(PATIENT_MS)
            return context

        browser.new_context = new_context  # type: ignore[method-assign]
        try:
            yield browser
        finally:
            browser.close()


def sign_in(browser: Browser, base: str, name: str, password: str) -> StorageState:
    """Sign in by password; return the session for other contexts."""
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


def source_of(context: BrowserContext, url: str) -> str:
    """Return a page's HTML. Raises AssertionError on an error response, to which no link may lead."""
    answer = context.request.get(url)
    assert answer.ok, f"{url} answers {answer.status}"
    return answer.text()


def in_every(corners: tuple[Corner, ...], pages: Mapping[str, str]) -> Visits:
    """Return visits of each page in each of the corners."""
    return dict.fromkeys(corners, pages)


def in_any(corners: tuple[Corner, ...], pages: Mapping[str, str]) -> Visits:
    """Return one visit of each page, in a random corner: over some runs, each page is visited in each corner."""
    found: dict[Corner, dict[str, str]] = {corner: {} for corner in corners}
    for title, url in pages.items():
        found[random.choice(corners)][title] = url
    return found


def look(
    visits: Visits,
    complaints: Complaints,
    *,
    session: StorageState | None,
    into: Path | None,
    judged: bool = True,
) -> None:
    """Open pages and check them; save a screenshot <title>-<theme>-<size>.png of each `into` a folder, if one is given.

    Pages that are not ours to change are opened but not `judged` by axe. Each corner has its own browser, some at
    once: half of the time is spent waiting until a page requests nothing more.
    """

    def walk(corner: Corner) -> None:
        theme, size = corner
        width, height = SIZES[size]
        viewport: Any = {"width": width, "height": height}
        with chromium() as browser:
            page = browser.new_context(color_scheme=theme, viewport=viewport, storage_state=session).new_page()
            complaints.watch(page)
            for title, url in visits[corner].items():
                page.goto(url, wait_until="networkidle")
                picture(page, complaints, into, f"{title}-{theme}-{size}", judged=judged)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(walk, visits))


def pictures(page: Page, complaints: Complaints, into: Path | None, title: str) -> None:
    """Do the same for a form's response, which cannot be reopened: change its size and theme in place."""
    for theme in THEMES:
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # no colour transition
        for size, (width, height) in SIZES.items():
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_load_state("networkidle")
            page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")  # there, a sticky bar covers no button
            picture(page, complaints, into, f"{title}-{theme}-{size}")


def picture(page: Page, complaints: Complaints, into: Path | None, title: str, *, judged: bool = True) -> None:
    """Check the page in its current state, and save a screenshot if a folder is given."""
    complaints.measure(page)
    if judged:
        complaints.judge(page, title)
    if into is not None:
        into.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=into / f"{title}.png", full_page=True)


def _said(violation: Mapping[str, Any]) -> Iterator[str]:
    for node in violation["nodes"]:
        yield f"{violation['id']} ({violation['help']}) at {node['target']}: {node['html'][:160]}"


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base")
    parser.add_argument("name")
    parser.add_argument("password")
    parser.add_argument("--into", type=Path, default=Path("var/look"))
    parser.add_argument("--only", default="", help="part of a page's title")
    asked = parser.parse_args()
    base, complaints = asked.base.rstrip("/"), Complaints()
    with chromium() as browser:
        session = sign_in(browser, base, asked.name, asked.password)
        pages = _pages(browser, base, session)
        chosen = {title: url for title, url in pages.items() if asked.only in title}
        look(in_every(EVERY, chosen), complaints, session=session, into=asked.into)
    sys.stdout.write("".join(f"{one}\n" for one in complaints.found) or "no complaints\n")
    return 1 if complaints.found else 0


def _pages(browser: Browser, base: str, session: StorageState) -> dict[str, str]:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from tests.e2e.crawl import crawl

    context = browser.new_context(storage_state=session)
    pages = crawl(lambda url: source_of(context, url), base).pages
    context.close()
    return pages


if __name__ == "__main__":
    sys.exit(main())
