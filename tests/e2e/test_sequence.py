"""A customer sets the sequence path of a source, and sees a gap open, shrink and close."""

import json

import pytest
from playwright.sync_api import Browser

from loadgen.scripted import Receiver
from localbox.testing import Box
from tests.e2e.conftest import LIVE_MS
from tests.e2e.editing import send
from tests.e2e.incident import begin_incident
from tests.support.patience import until

pytestmark = pytest.mark.timeout(900)
QUERY_MS = 120_000  # a cell's first streaming query starts Spark SQL


def test_gap_is_shown_with_its_key_until_the_missing_numbers_arrive(
    whole_box: Box, chrome: Browser, receiver: Receiver
):
    destinations = {"crm": {"type": "http", "url": receiver.url("/counted")}}
    story = begin_incident(whole_box, chrome, "counted", {"sources": {"shop": {}}, "destinations": destinations})
    endpoint = f"http://127.0.0.1:{story.port}/v1/events"

    story.page.goto(f"{story.base}/pipes/{story.id}/")
    story.click(story.page.get_by_role("navigation", name="Pipe").get_by_role("link", name="Sequence", exact=True))
    story.sees("No source of this pipe has a sequence.")
    story.follow("edit the pipe")
    story.fill("Sequence path of source 1", "seq")
    story.fill("Key path of source 1", "device")
    story.main.get_by_label("All at once").check()
    story.press("Publish revision 2")
    until(lambda: story.read("")["live_revision"] == 2, "the revision is live", LIVE_MS / 1_000)

    def sends(number: int) -> None:
        assert send(endpoint, story.key, {"device": "pump-7", "seq": number}) == 202

    sends(40)
    sends(44)
    story.page.goto(f"{story.base}/pipes/{story.id}/sequence/")
    story.sees("expected 41, received 44", QUERY_MS)
    story.sees("3 missing")
    story.sees("pump-7")
    sends(42)
    story.sees("2 of 3 missing")
    story.sees("received 42 after 44")
    sends(41)
    sends(43)
    story.sees("arrived late")
    found = story.read("sequence/?kind=gap")
    assert [(one["key"], one["number"], one["missing"]) for one in found["results"]] == [("pump-7", "44", 0)]
    assert found["sources"] == [
        {"source": "shop", "path": "seq", "compared": 5, "gaps": 1, "out_of_order": 3, "repeated": 0}
    ]
    until(lambda: len(receiver.got["/counted"]) == 5, "all events are delivered", 60)
    assert {json.loads(one.body)["seq"] for one in receiver.got["/counted"]} == set(range(40, 45))
    story.click(story.main.get_by_role("table").get_by_role("link", name="Gap", exact=True))
    story.sees("stored as")
    story.page.context.close()
    assert story.complaints.found == []
