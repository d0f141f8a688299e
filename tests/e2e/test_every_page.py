"""Every page, on a desktop in light or on a phone in dark, on a box with traffic: no browser or axe complaint.

The crawl follows links from home, and its pages are compared with the routes: a page that no link or form leads to
fails here, so a new one cannot be forgotten.
"""

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from django.template.loader import render_to_string
from playwright.sync_api import Browser, Page, expect

from loadgen.scripted import Receiver
from localbox.testing import ROOT, Box
from mgmt.page_urls import urlpatterns
from tests.e2e.conftest import said_by
from tests.e2e.crawl import Found, crawl, name_of
from tests.e2e.look import (
    DIAGONAL,
    EVERY,
    Complaints,
    Theme,
    Visits,
    in_any,
    in_every,
    look,
    picture,
    pictures,
    sign_in,
    source_of,
)
from tests.support.patience import Patience
from tests.support.sender import Sender

pytestmark = pytest.mark.timeout(1_200)
ROUTES = {str(pattern.name) for pattern in urlpatterns}
SIGNED_OUT = {
    "sign_in",
    "sign_in_by_link",
    "confirm_channel",
    "accept_invitation",
    "sso",
    "sso_start",
    "sso_callback",
    "sso_saml_metadata",
    "sso_saml_acs",
    "sso_saml_finish",
    "sso_link",
    "shared_catalogue",
    "shared_subject",
    "portal",
}
# While a redrive, replay or shadow run is under way, a backfill waits, or a ramp continues.
SHOWN_FOR_A_WHILE = {"abort_redrive", "cancel_backfill", "hold_ramp", "pause_replay", "stop_shadow"}
FOR_STAFF_OF_THE_TENANT = {"move_to_own_cell"}  # tests/db/console/test_hot_partition_alert.py
LOOK = ROOT / "var" / "look"  # the screenshots of the long tests
EVENTS_S = 8.0
IN_LEDGER_MS = 60_000


class Scene(NamedTuple):
    """Box whose pipes have something to show."""

    box: Box
    base: str
    password: str
    pipes: frozenset[str]
    receiver: str
    catalogue: tuple[str, ...]  # paths of shared pages
    invitation: str  # path of its link


@pytest.fixture(scope="module")
def scene(whole_box: Box, chrome: Browser) -> Iterator[Scene]:
    receiver = Receiver()
    receiver.answers |= {"/refuses": 401, "/busy": 503}
    made = said_by(whole_box, "tests/e2e/scene.py", "all", f"http://127.0.0.1:{receiver.port}")
    found = Scene(
        whole_box,
        whole_box.env["PENSTOCK_WEB_URL"],
        made["password"],
        frozenset(made["pipes"]),
        receiver.url("/fine"),
        tuple(made["catalogue"]),
        made["invitation"],
    )
    for name in ("orders", "refunds", "visits", "archive"):
        _send(whole_box, made["keys"][name], 80 if name == "orders" else 20)  # enough that some are held, not dead
    _wait_for_the_ledger(chrome, found)
    said_by(whole_box, "tests/e2e/scene.py", "after")
    yield found
    receiver.close()


def _send(box: Box, key: str, count: int) -> None:
    with Sender(int(box.env["PENSTOCK_INGEST_PORT"]), key, 20) as sender:
        patience = Patience(EVENTS_S)
        while not patience.is_over and len(sender.acked) < count:
            time.sleep(0.05)
    assert sender.acked


def _wait_for_the_ledger(chrome: Browser, scene: Scene) -> None:
    """Wait until home shows audit's 401 and refunds."""
    context = chrome.new_context(storage_state=sign_in(chrome, scene.base, "alice", scene.password))
    page = context.new_page()
    page.goto(scene.base)
    expect(page.locator("#undelivered")).to_contain_text("returned 401", timeout=IN_LEDGER_MS)
    expect(page.locator("#undelivered")).to_contain_text("refunds", timeout=IN_LEDGER_MS)
    context.close()


@cache
def _crawled(chrome: Browser, scene: Scene, who: str, start: str = "/") -> Found:
    context = chrome.new_context(storage_state=sign_in(chrome, scene.base, who, scene.password))
    found = crawl(lambda url: source_of(context, url), scene.base, start)
    context.close()
    found.pages = {title: url for title, url in found.pages.items() if not _is_of_another_test(title, scene)}
    return found


def _is_of_another_test(title: str, scene: Scene) -> bool:
    """Return True for the page of a pipe that is not in the scene."""
    pipe = re.search(r"-pipes-(pipe_\w+)", title)
    return pipe is not None and pipe[1] not in scene.pipes


def test_every_route_is_reached_by_a_link_or_a_form(chrome: Browser, scene: Scene):
    reached: set[str] = set()
    for who, start in (("alice", "/"), ("admin", "/staff/")):
        found = _crawled(chrome, scene, who, start)
        reached |= found.routes | set(found.posts)
    assert ROUTES - SIGNED_OUT - SHOWN_FOR_A_WHILE - FOR_STAFF_OF_THE_TENANT - reached == set()


def test_pages_of_each_route_are_clean_on_a_desktop_in_light_or_on_a_phone_in_dark(chrome: Browser, scene: Scene):
    """Pages of a route have the same template; the long test visits all of them, filtered too, in all corners."""
    assert_clean(chrome, scene, "alice", in_any(DIAGONAL, some_of_each_route(_crawled(chrome, scene, "alice"))))


@pytest.mark.long
def test_every_page_with_filters_is_clean_at_both_widths_in_both_themes(chrome: Browser, scene: Scene):
    assert_clean(chrome, scene, "alice", in_every(EVERY, _crawled(chrome, scene, "alice").pages), LOOK)


def test_control_plane_pages_are_clean(chrome: Browser, scene: Scene):
    pages = some_of_each_route(_crawled(chrome, scene, "admin", "/staff/"))
    assert_clean(chrome, scene, "admin", in_any(DIAGONAL, pages))


@pytest.mark.long
def test_control_plane_pages_with_filters_are_clean_at_both_widths(chrome: Browser, scene: Scene):
    pages = _crawled(chrome, scene, "admin", "/staff/").pages
    assert_clean(chrome, scene, "admin", in_every(DIAGONAL, pages), LOOK)


@pytest.mark.long
def test_viewer_pages_are_clean(chrome: Browser, scene: Scene):
    pages = without_filters(_crawled(chrome, scene, "vera"))
    reading = {f"viewer-{title}": url for title, url in pages.items()}
    assert_clean(chrome, scene, "vera", in_every(DIAGONAL[1:], reading), LOOK)


def test_empty_home_is_clean(chrome: Browser, scene: Scene):
    assert_clean(chrome, scene, "dora", in_every(EVERY, {"home-of-nobody": f"{scene.base}/"}))


def without_filters(found: Found) -> dict[str, str]:
    return {title: url for title, url in found.pages.items() if "?" not in url}


def some_of_each_route(found: Found) -> dict[str, str]:
    """Return a page of each route, chosen at random: the empty and the full state of each over some runs."""
    pages = list(without_filters(found).items())
    random.shuffle(pages)
    by_route = {name_of(url): (title, url) for title, url in pages}
    return dict(by_route.values())


def assert_clean(chrome: Browser, scene: Scene, who: str, visits: Visits, into: Path | None = None) -> None:
    complaints = Complaints()
    look(visits, complaints, session=sign_in(chrome, scene.base, who, scene.password), into=into)
    assert not complaints.found, "\n".join(complaints.found)


def test_form_responses_are_clean(chrome: Browser, scene: Scene):
    complaints = Complaints()
    context = chrome.new_context(storage_state=sign_in(chrome, scene.base, "alice", scene.password))
    page = context.new_page()
    complaints.watch(page)
    complaints.expect_error(f"{scene.base}/pipes/new/")
    page.goto(f"{scene.base}/pipes/new/")
    page.get_by_role("button", name="Add step", exact=True).click()
    page.get_by_label("Path of step 1", exact=True).fill("order.total")
    page.get_by_role("button", name="Create pipe").click()
    expect(page.locator("#normalize-0-to-error")).to_contain_text("such as order.total")
    pictures(page, complaints, None, "new-refused")
    page.get_by_role("button", name="Edit as JSON").click()
    pictures(page, complaints, None, "new-json")
    page.get_by_role("button", name="Use the form").click()
    expect(page.locator("#spec-error")).to_contain_text("$.normalize[0].to")
    page.goto(f"{scene.base}/pipes/new/")
    page.get_by_label("Pipe name").fill("made in passing")
    page.get_by_label("URL of destination 1").fill(scene.receiver)
    page.get_by_role("button", name="Create pipe").click()
    expect(page.get_by_role("heading", name="made in passing created")).to_be_visible()
    pictures(page, complaints, None, "created")
    context.close()
    assert not complaints.found, "\n".join(complaints.found)


@pytest.mark.long
def test_admin_pages_open_without_a_browser_complaint(chrome: Browser, scene: Scene):
    complaints = Complaints()
    session = sign_in(chrome, scene.base, "admin", scene.password)
    found = without_filters(_crawled(chrome, scene, "admin", "/admin/"))
    pages = {f"staff-{title}": url for title, url in found.items()}
    look(in_every(EVERY, pages), complaints, session=session, into=LOOK, judged=False)
    assert not complaints.found, "\n".join(complaints.found)


def test_forms_work_without_javascript(chrome: Browser, scene: Scene):
    context = chrome.new_context(
        storage_state=sign_in(chrome, scene.base, "alice", scene.password), java_script_enabled=False
    )
    page = context.new_page()
    page.goto(f"{scene.base}/?q=orders")
    page.get_by_role("link", name="orders", exact=True).first.click()
    page.get_by_role("link", name="audit", exact=True).first.click()
    page.get_by_role("link", name="Delivery settings", exact=True).click()
    page.get_by_label("Retry period").fill("2 d")
    page.get_by_role("button", name="Retry 408 and 425").click()
    expect(page.get_by_label("Status of rule 2")).to_have_value("425")
    expect(page.get_by_label("Retry period")).to_have_value("2 d")
    page.get_by_role("button", name="Publish settings").click()
    expect(page.get_by_role("status")).to_contain_text("published with the new settings of audit")
    page.get_by_role("link", name="Attempts", exact=True).click()
    page.get_by_label("Outcome").select_option("dead")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("#attempts tbody tr").first).to_contain_text("Returned 401")
    context.close()


def test_signed_out_and_error_pages_are_clean(chrome: Browser, scene: Scene):
    assert_pages_without_tenant_clean(chrome, scene, lambda pages: in_any(DIAGONAL, pages))


@pytest.mark.long
def test_signed_out_and_error_pages_are_clean_at_both_widths_in_both_themes(chrome: Browser, scene: Scene):
    assert_pages_without_tenant_clean(chrome, scene, lambda pages: in_every(EVERY, pages), LOOK)


def assert_pages_without_tenant_clean(
    chrome: Browser, scene: Scene, visits_of: Callable[[Mapping[str, str]], Visits], into: Path | None = None
) -> None:
    complaints = Complaints()
    outside = {"sign-in": f"{scene.base}/sign-in/", "reset": f"{scene.base}/account/password/reset/"}
    outside |= {"invitation": f"{scene.base}{scene.invitation}", "sso": f"{scene.base}/sso/"}
    outside |= {f"shared-{number}": scene.base + path for number, path in enumerate(scene.catalogue)}
    spent = {"sign-in-spent": f"{scene.base}/sign-in/spent/", "no-receipt": f"{scene.base}/receipts/none/"}
    spent |= {"no-invitation": f"{scene.base}/invitations/none/", "no-catalogue": f"{scene.base}/catalogue/none/"}
    inside = {"403": f"{scene.base}/pipes/new/", "404": f"{scene.base}/pipes/none/"}
    for url in (*spent.values(), *inside.values()):
        complaints.expect_error(url)
    look(visits_of(outside | spent), complaints, session=None, into=into)
    viewer = sign_in(chrome, scene.base, "vera", scene.password)
    look(visits_of(inside), complaints, session=viewer, into=into)
    assert not complaints.found, "\n".join(complaints.found)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_pages_for_server_and_csrf_errors_are_clean(chrome: Browser, scene: Scene, theme: Theme, width: int):
    context = chrome.new_context(viewport={"width": width, "height": 844}, color_scheme=theme)
    page, complaints = context.new_page(), Complaints()
    complaints.watch(page)
    for name in ("500", "503", "403_csrf"):
        _show_in_place_of_sign_in(page, scene.base, render_to_string(f"{name}.html"))
        picture(page, complaints, None, f"{name}-{theme}-{width}")
    context.close()
    assert not complaints.found, "\n".join(complaints.found)


def _show_in_place_of_sign_in(page: Page, base: str, body: str) -> None:
    """Show a rendered template at the server's own address, so that its styles load."""
    page.route("**/sign-in/", lambda route: route.fulfill(body=body, content_type="text/html"))
    page.goto(f"{base}/sign-in/", wait_until="networkidle")
    page.unroute("**/sign-in/")


def test_expired_form_is_reported(chrome: Browser, scene: Scene):
    context = chrome.new_context()
    page = context.new_page()
    page.goto(f"{scene.base}/sign-in/")
    context.clear_cookies()
    page.get_by_label("User name").fill("alice")
    page.get_by_label("Password").fill("x")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="This form has expired")).to_be_visible()
    context.close()
