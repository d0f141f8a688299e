"""Actions of a user in the editor, and the first event for the new pipe."""

import json
import time
import urllib.error
import urllib.request
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.support.patience import Patience


def add_step(page: Page, number: int, op: str, path: str, label: str) -> Locator:
    """Add a step and fill in its path; return the field with that label, which its operation shows."""
    page.get_by_role("button", name="Add step", exact=True).click()
    operation = page.get_by_label(f"Operation of step {number}", exact=True)
    expect(operation).to_be_focused()
    if operation.input_value() != op:
        operation.select_option(op)
    field = page.get_by_label(f"{label} of step {number}", exact=True)
    expect(field).to_be_visible()
    page.get_by_label(f"Path of step {number}", exact=True).fill(path)
    return field


def send(endpoint: str, key: str, event: Any) -> int:
    """POST one event as the page's snippets do; return the status."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(endpoint, json.dumps(event).encode(), headers)  # noqa: S310 (the page's own)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code


def send_first(endpoint: str, key: str, event: Any) -> None:
    """Send one event as soon as ingest knows the key."""
    patience = Patience(20)
    while (status := send(endpoint, key, event)) == 401:
        assert not patience.is_over, "ingest does not know the key"
        time.sleep(0.2)
    assert status == 202
