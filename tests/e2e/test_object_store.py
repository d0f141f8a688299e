"""A bucket in the browser: added in the editor, refused with a wrong secret, and complete with the right one."""

import json
import re

import pytest
from playwright.sync_api import Browser, expect

from loadgen.scripted import Receiver
from localbox.testing import Box
from tests.e2e.incident import begin_incident
from tests.e2e.look import pictures
from tests.e2e.test_first_pipe import INTO, reload_until
from tests.support.patience import until
from tests.support.sender import Sender
from tests.support.sigv4 import Store

pytestmark = pytest.mark.timeout(900)
EVENTS = 120
ACCESS_KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "the-secret-of-the-key"
REFUSED_MS = 90_000


def numbers_in(store: Store) -> list[int]:
    """Return the number of each event in the objects of the store."""
    return [json.loads(line)["n"] for body in list(store.objects.values()) for line in body.splitlines()]


def test_events_are_objects_in_a_bucket_once_its_secret_is_right(whole_box: Box, chrome: Browser, receiver: Receiver):
    to = {"type": "http", "url": receiver.url("/fine")}
    story = begin_incident(whole_box, chrome, "archive-s3", {"sources": {"shop": {}}, "destinations": {"crm": to}})
    page, main = story.page, story.main
    with Store(ACCESS_KEY, SECRET) as store:
        page.goto(f"{story.base}/pipes/{story.id}/edit/")
        main.get_by_role("button", name="Add destination", exact=True).click()
        page.get_by_label("Type of destination 2", exact=True).select_option("s3")
        story.fill("Name of destination 2", "files")
        story.fill("URL of the bucket of destination 2", f"{store.url}/events")
        story.fill("Region of destination 2", "eu-central-1")
        story.fill("Access key ID of destination 2", ACCESS_KEY)
        story.fill("Prefix of keys (optional) of destination 2", "shop/")
        pictures(page, story.complaints, INTO, "editor-bucket")
        story.press(re.compile("^Publish"))
        until(lambda: story.read("")["live_revision"] == 2, "the revision is live", 120)

        page.goto(f"{story.base}/pipes/{story.id}/destinations/files/")
        story.sees("The secret is missing: requests fail until you enter it.")
        story.fill("Secret access key", "another secret")
        story.press("Save secret")
        with Sender(story.port, story.key, 40) as sender:
            until(lambda: len(sender.acked) >= EVENTS, "events are accepted", 60)
            until(lambda: store.refused > 0, "the store refuses the wrong secret", 60)
            reload_until(page, "main", "returned 403", REFUSED_MS)
            pictures(page, story.complaints, INTO, "bucket-refused")
            assert not store.objects
            story.fill("Secret access key", SECRET)
            story.press("Replace secret")
        sent = len(sender.acked)
        until(lambda: sorted(numbers_in(store)) == list(range(sent)), "each event is in one object", 180)
        until(lambda: story.bins().get("delivered") == 2 * sent, "the ledger says so", 90, seen=story.bins)
        assert {name: count for name, count in story.bins().items() if count} == {"delivered": 2 * sent}
        assert all(
            re.fullmatch(r"/events/shop/date=[\d-]{10}/hour=\d\d/batch_\w{32}\.jsonl", one) for one in store.objects
        )
        page.reload()
        expect(main).to_contain_text("The secret is stored")
        pictures(page, story.complaints, INTO, "bucket")
    page.context.close()
    assert story.complaints.found == []
