"""A user's path through an incident: clicks and filled fields are counted, and the pipe is read through the API."""

import json
import re
from collections.abc import Callable
from typing import Any, Final

from playwright.sync_api import Browser, Locator, Page, expect

from loadgen.scripted import Receiver
from localbox.testing import Box
from tests.e2e.conftest import LIVE_MS, said_by
from tests.e2e.look import Complaints, sign_in
from tests.support.patience import until

FEWER_THAN: Final = 10  # clicks and filled fields from an alert to the end of the incident
SHOWN_MS: Final = 90_000  # alerts open within a minute
ALERTS: Final = re.compile(r"^alerts( \d+( open)?)?$", re.IGNORECASE)


class Incident:
    """One pipe with the destination crm, and the page on which its owner handles an incident."""

    def __init__(self, box: Box, chrome: Browser, pipe: dict[str, Any], name: str) -> None:
        self.name, self.key, self.id = name, str(pipe["key"]), str(pipe["pipe"])
        self.password = str(pipe["password"])  # of the owner, alice
        self.base = box.env["PENSTOCK_WEB_URL"]
        self.port = int(box.env["PENSTOCK_INGEST_PORT"])
        self.complaints = Complaints()
        session = sign_in(chrome, self.base, "alice", self.password)
        self.page: Page = chrome.new_context(storage_state=session).new_page()
        self.complaints.watch(self.page)
        self.actions = 0
        until(lambda: self.read("")["live_revision"] == 1, f"{name} is live", LIVE_MS / 1_000)

    # -- what the owner does -----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Open the console; nothing is clicked yet."""
        self.page.goto(f"{self.base}/")

    def click(self, target: Locator) -> None:
        """Click a link or button once it is shown."""
        expect(target).to_be_visible(timeout=SHOWN_MS)
        target.click()
        self.actions += 1

    def follow(self, name: str | re.Pattern[str]) -> None:
        """Click the first link in the page's content with this name."""
        self.click(self.main.get_by_role("link", name=name, exact=isinstance(name, str)).first)

    def press(self, name: str | re.Pattern[str]) -> None:
        """Click a button in the page's content."""
        self.click(self.main.get_by_role("button", name=name, exact=isinstance(name, str)).first)

    def fill(self, label: str, text: str) -> None:
        """Fill in a field."""
        self.main.get_by_label(label, exact=True).fill(text)
        self.actions += 1

    def back(self) -> None:
        """Return to the page before."""
        self.page.go_back()
        self.actions += 1

    def open_alert(self, words: str) -> None:
        """Open the list of alerts, and the pipe's alert in it as soon as it is shown."""
        self.click(self.page.get_by_role("link", name=ALERTS).first)
        row = self.main.get_by_role("row").filter(has_text=self.name).filter(has_text=words)
        self.click(row.get_by_role("link", name=words).first)
        self.sees(words)

    @property
    def main(self) -> Locator:
        """The page's content."""
        return self.page.get_by_role("main")

    def sees(self, words: str, within_ms: float = SHOWN_MS) -> None:
        """Wait until the page shows the text; live refresh brings it without a reload."""
        expect(self.main).to_contain_text(words, timeout=within_ms)

    def end(self, *, actions: int) -> None:
        """Check that the browser has not complained, and the number of actions, which docs/incidents.md states."""
        self.page.context.close()
        assert self.complaints.found == []
        assert self.actions == actions < FEWER_THAN

    # -- what is true ------------------------------------------------------------------------------------------------

    def read(self, path: str) -> dict[str, Any]:
        """Read from the pipe's API."""
        answer = self.page.request.get(f"{self.base}/api/v1/pipes/{self.id}/{path}")
        assert answer.ok, answer.text()
        found: dict[str, Any] = answer.json()
        return found

    def bins(self) -> dict[str, int]:
        """Return how many of the last hour's messages are in each bin."""
        total = self.read("minutes/?range=1h")["total"]
        return {name: int(count) for name, count in (total["bins"] if total else {}).items()}

    def state_of_alert(self, cause: str) -> str:
        """Return the state of the pipe's newest alert with this cause; "" if there is none."""
        found = self.read("alerts/")["results"]
        return next((str(alert["state"]) for alert in found if alert["cause"] == cause), "")

    def until_drained(self, receiver: Receiver, path: str, sent: Callable[[], set[str]], limit_s: float) -> None:
        """Wait until each sent message has been delivered, and the ledger has nothing dead, held, lost or waiting."""

        def taken() -> set[str]:
            return {one.position for one in receiver.got[path] if one.answered == 204}

        def counts() -> dict[str, int]:
            return {name: count for name, count in self.bins().items() if count}

        until(lambda: taken() == sent(), "all are delivered", limit_s, seen=lambda: len(sent() - taken()))
        until(lambda: counts() == {"delivered": len(sent())}, "the ledger says so", 60, seen=counts)


def begin_incident(
    box: Box, chrome: Browser, name: str, spec: dict[str, Any], credentials: dict[str, Any] | None = None
) -> Incident:
    """Create a pipe and wait until it is live."""
    words = ("spec", name, json.dumps(spec), json.dumps(credentials or {}))
    return Incident(box, chrome, said_by(box, "tests/e2e/scene.py", *words), name)
