"""An event type in five minutes: its IDL is uploaded in the browser, a generated client sends, a change of the sender
breaks it, the page names the field, and the event is accepted with a new version.
"""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, FilePayload

from loadgen.scripted import Receiver
from localbox.testing import Box
from penstock_cli.__main__ import main
from tests.e2e.conftest import said_by
from tests.e2e.incident import Incident
from tests.e2e.test_first_incident import FIVE_MINUTES_S
from tests.support.patience import Patience, until

pytestmark = pytest.mark.timeout(900)
APPLIED_S: Final = 60  # a version is published within seconds
IDL: Final = """@namespace("com.shop")
protocol Shop {
  record Order {
    @logicalType("time-uuid") string id;
    double total;
  }
}
"""
CHANGED: Final = {
    "type": "record",
    "name": "Order",
    "namespace": "com.shop",
    "fields": [
        {"name": "id", "type": {"type": "string", "logicalType": "time-uuid"}},
        {"name": "total", "type": "double"},
        {"name": "gift", "type": ["null", "boolean"], "default": None},
    ],
}


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folder of generated packages, which can be imported from it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("client_")]:
        del sys.modules[name]


def generate(into: Path, package: str, *words: str) -> ModuleType:
    """Generate a Python client and import it."""
    assert main(["generate", "--lang", "python", "--package", package, "--out", str(into), *words]) == 0
    importlib.invalidate_caches()
    return importlib.import_module(package)


class Sending:
    """A customer's program: sends one event and waits for its result."""

    def __init__(self, box: Box, key: str) -> None:
        self._url, self._key = box.env["PENSTOCK_INGEST_URL"], key

    def refusal(self, client: ModuleType, **fields: Any) -> tuple[str, str] | None:
        """Return pointer and reason of a refused event; None if it was accepted."""
        with client.BatchSender(self._url, self._key, source="shop-backend") as sender:
            try:
                sender.send(client.Order(id=client.TimeUuid.now(), **fields)).result(60)
            except client.EventRefusedError as exc:
                return str(exc.pointer), str(exc.detail)
        return None


def open_tab(story: Incident, name: str) -> None:
    """Open a page of the pipe by its tab."""
    tabs = story.page.get_by_role("navigation", name="Pipe", exact=True)
    story.click(tabs.get_by_role("link", name=name, exact=True))


def register(story: Incident, idl: str) -> None:
    """Upload the IDL as the first version of a new subject."""
    story.click(story.page.get_by_role("link", name="Schemas", exact=True).first)
    story.follow("Register schema")
    story.fill("Subject", "shop-orders")
    file = FilePayload(name="shop.avdl", mimeType="text/plain", buffer=idl.encode())
    story.main.locator("#file").set_input_files(file)
    story.press("Register")
    story.sees("Version 1 of shop-orders registered")


def bind(story: Incident) -> None:
    """Choose the subject for all events of the pipe's source."""
    story.page.goto(f"{story.base}/pipes/{story.id}/")
    open_tab(story, "Sources and destinations")
    story.follow("No schema")
    story.follow("Change event types")
    story.main.get_by_label("Subject 1", exact=True).select_option("shop-orders")
    story.press("Save")
    story.sees("Newest version")


def test_event_type_is_registered_used_broken_and_extended_within_five_minutes(
    whole_box: Box, chrome: Browser, receiver: Receiver, clients: Path, monkeypatch: pytest.MonkeyPatch
):
    spec = {"sources": {"shop": {}}, "destinations": {"crm": {"type": "http", "url": receiver.url("/typed")}}}
    pipe = said_by(whole_box, "tests/e2e/scene.py", "spec", "typed", json.dumps(spec), "{}")
    story = Incident(whole_box, chrome, pipe, "typed")
    for name, value in (("URL", story.base), ("USER", "alice"), ("PASSWORD", pipe["password"])):
        monkeypatch.setenv(f"PENSTOCK_{name}", value)
    patience = Patience(FIVE_MINUTES_S)
    story.begin()
    register(story, IDL)
    bind(story)

    first, sending = generate(clients, "client_one", "--subject", "order=shop-orders"), Sending(whole_box, story.key)
    until(lambda: sending.refusal(first, total=12.5) is None, "the first event is accepted", APPLIED_S)
    with pytest.raises(first.InvalidValueError):
        first.Order(id=first.TimeUuid.now(), total="a lot")

    (clients / "order.avsc").write_text(json.dumps(CHANGED))
    second = generate(clients, "client_two", "--schema", f"order={clients / 'order.avsc'}")
    until(lambda: sending.refusal(second, total=12.5, gift=True) is not None, "the source knows its type", APPLIED_S)
    pointer, reason = sending.refusal(second, total=12.5, gift=True) or ("", "")
    assert (pointer, reason) == ("/gift", "/gift: is not a field of the schema")

    open_tab(story, "Rejected")
    story.sees("is not a field of the schema")
    story.click(story.main.get_by_role("row").filter(has_text="/gift").get_by_role("link").first)
    story.follow("Accept with a new version")
    story.sees("Compatible at level BACKWARD")
    story.press("Register")
    story.sees("Version 2 of shop-orders registered")
    until(lambda: sending.refusal(second, total=12.5, gift=True) is None, "the event is accepted", APPLIED_S)
    assert not patience.is_over

    until(lambda: any(b'"gift":true' in one.body for one in receiver.got["/typed"]), "it is delivered", 60)
    story.page.context.close()
    assert story.complaints.found == []
