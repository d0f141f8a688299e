"""Customer portal in a frame of another site: a customer corrects the URL of a failing endpoint and redrives events.

The host page has another host name than the portal, so the frame is a third party to it, without cookies.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Final

import pytest
import requests
from playwright.sync_api import Browser, FrameLocator, Page, expect

from loadgen.scripted import Receiver
from localbox.settings import ROOT
from localbox.testing import Box
from tests.e2e.incident import Incident, begin_incident
from tests.e2e.look import EVERY, SIZES, THEMES, Complaints, in_every, look
from tests.e2e.test_first_incident import send_more
from tests.e2e.test_incidents import spec_of
from tests.support.patience import until

pytestmark = pytest.mark.timeout(900)
SHOWN_MS: Final = 120_000
OLD, NEW = "/moved-away", "/new-address"


@contextmanager
def site(name: str, portal: str) -> Iterator[str]:
    """Serve a page that embeds the portal; yield its origin, with the host name `name`."""
    html = f'<!doctype html><html lang="en"><title>Acme</title><iframe title="Endpoint" src="{portal}"></iframe>'
    style = "<style>iframe { width: 100%; height: 90vh; border: 0 }</style>"

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)  # also to the browser's request for an icon
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write((html + style).encode() if self.path == "/" else b"")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://{name}:{server.server_port}"
    server.shutdown()
    server.server_close()


def create_link(incident: Incident) -> str:
    """Create a link as the backend of a tenant does; return its address."""
    url = f"{incident.base}/api/v1/pipes/{incident.id}/destinations/crm/portal-links/"
    body = {"label": "Acme", "may_redrive": True, "may_edit": True, "accent": "#aa3300"}
    answer = requests.post(url, json=body, auth=("alice", incident.password), timeout=60)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["url"])


def allow(incident: Incident, *origins: str) -> None:
    """List the sites that may embed the portal, on the page of the console."""
    incident.page.goto(f"{incident.base}/portals/")
    incident.fill("Origins, one per line", "\n".join(origins))
    incident.press("Save sites")
    incident.sees("The sites are saved")


def framed_address(page: Page) -> str:
    """Return the address that the page's frame shows after it was loaded, or refused by the browser."""
    page.wait_for_load_state("networkidle")
    return page.frames[1].url


def refreshed(frame: FrameLocator, words: str) -> None:
    """Wait until the portal shows the text after a refresh."""

    def shows() -> bool:
        frame.get_by_role("link", name="Refresh").click()
        expect(frame.get_by_role("heading", name="Your endpoint")).to_be_visible()
        return words in frame.locator("main").inner_text()

    until(shows, f"the portal shows {words!r}", SHOWN_MS / 1_000, seen=lambda: frame.locator("main").inner_text())


def _undelivered(frame: FrameLocator) -> int:
    """Refresh the portal; return 1 if it lists undelivered events, 0 if not."""
    refreshed(frame, "Latest attempts")
    return frame.get_by_role("heading", name="Undelivered events").count()


def check_sizes(page: Page, complaints: Complaints) -> None:
    """Check that the frame does not scroll sideways, at both widths and in both themes."""
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        for width, height in SIZES.values():
            page.set_viewport_size({"width": width, "height": height})
            wide = page.frames[1].evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{wide} px wider than the frame at {width} px"
    complaints.measure(page)


def test_customer_corrects_the_url_in_a_frame_and_redrives(whole_box: Box, chrome: Browser, receiver: Receiver):
    receiver.answers[OLD] = 404
    incident = begin_incident(whole_box, chrome, "portal", spec_of(receiver.url(OLD)))
    sent = send_more(whole_box, incident.key, 5)
    until(lambda: incident.bins().get("dead", 0) + incident.bins().get("held", 0) == len(sent), "all failed", 120)
    portal, context, complaints = create_link(incident), chrome.new_context(), Complaints()
    page = context.new_page()
    with site("localhost", portal) as host, site("localhost", portal) as stranger:
        allow(incident, host)
        page.goto(stranger)
        assert framed_address(page) == "chrome-error://chromewebdata/", "the browser refuses a site that is not listed"
        complaints.watch(page)
        page.goto(host)
        frame = page.frame_locator("iframe")
        expect(frame.locator("main")).to_contain_text("Returned 404", timeout=SHOWN_MS)
        look(in_every(EVERY, {"portal": portal}), complaints, session=None, into=ROOT / "var" / "look")
        check_sizes(page, complaints)

        frame.get_by_label("URL").fill("http://169.254.169.254/latest")
        complaints.expect_error(portal)  # the answer is 422
        frame.get_by_role("button", name="Save URL").click()
        expect(frame.get_by_role("alert")).to_contain_text("The URL")
        frame.get_by_label("URL").fill(receiver.url(NEW))
        frame.get_by_role("button", name="Save URL").click()
        expect(frame.get_by_role("status")).to_contain_text("The new URL is saved")
        until(lambda: incident.read("")["live_revision"] == 2, "the new URL is live", 120)
        refreshed(frame, "Redrive")
        if frame.get_by_role("button", name="Resume").count():
            frame.get_by_role("button", name="Resume").click()
            expect(frame.get_by_role("status")).to_contain_text("active again")
        frame.get_by_role("button", name="Redrive").click()
        expect(frame.get_by_role("status")).to_contain_text("sent again")
        until(lambda: {one.id for one in receiver.got[NEW]} == sent, "all are delivered", 120)
        refreshed(frame, "204")
        until(lambda: not _undelivered(frame), "nothing is undelivered", 120)
        _end_of_the_link(incident, frame, portal)
    assert context.cookies() == [], "neither the portal nor the host has set a cookie"
    assert complaints.found == []
    context.close()
    incident.page.context.close()


def _end_of_the_link(incident: Incident, frame: FrameLocator, portal: str) -> None:
    """Revoke the link in the console; the frame then says what to do."""
    incident.page.goto(f"{incident.base}/portals/")
    incident.press("Revoke all of crm of portal")
    incident.sees("1 portal link of crm revoked.")
    frame.get_by_role("link", name="Refresh").click()
    expect(frame.locator("main")).to_contain_text("This link was revoked")
    assert requests.get(portal, timeout=60).status_code == 410
