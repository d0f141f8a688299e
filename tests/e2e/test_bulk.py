"""Bulk execution in the browser: a pipe is switched to it and back; each message is delivered and accounted for."""

import re

import pytest
from playwright.sync_api import Browser, expect

from loadgen.scripted import Receiver
from localbox.testing import Box
from tests.e2e.conftest import LIVE_MS
from tests.e2e.incident import Incident, begin_incident
from tests.support.patience import until
from tests.support.sender import Sender

pytestmark = pytest.mark.timeout(900)
EVENTS = 60
STARTS_S = 240.0  # of the cell's first query


def choose(story: Incident, execution: str, revision: int) -> None:
    """Publish a revision with this execution, and wait until it is live."""
    story.page.goto(f"{story.base}/pipes/{story.id}/edit/")
    story.main.get_by_label("Execution", exact=True).select_option(label=execution)
    story.main.get_by_label("All at once").check()
    story.press(re.compile("^Publish"))
    until(lambda: story.read("")["live_revision"] == revision, f"revision {revision} is live", LIVE_MS / 1_000)


def test_pipe_is_switched_to_bulk_and_back_and_each_message_is_delivered(
    whole_box: Box, chrome: Browser, receiver: Receiver
):
    path = "/imports"
    spec = {"sources": {"shop": {}}, "destinations": {"crm": {"type": "http", "url": receiver.url(path)}}}
    story, sent = begin_incident(whole_box, chrome, "imports", spec), set[str]()

    def send() -> None:
        with Sender(story.port, story.key, 40) as sender:
            until(lambda: len(sender.acked) >= EVENTS, "events are accepted", 60)
        sent.update(sender.positions)
        story.until_drained(receiver, path, lambda: sent, STARTS_S)

    send()
    choose(story, "Bulk", 2)
    send()
    story.page.goto(f"{story.base}/pipes/{story.id}/")
    expect(story.main).to_contain_text("bulk execution")
    choose(story, "Streaming (default)", 3)
    send()
    assert len(receiver.got[path]) == len(sent), "each is sent once"
    assert story.read("")["live_revision"] == 3
    story.page.context.close()
    assert story.complaints.found == []
