"""A draft in the browser: rehearsed on past events and on live traffic, promoted, and nothing is lost."""

import json

import pytest
from playwright.sync_api import Browser

from loadgen.scripted import Receiver
from localbox.testing import Box
from tests.e2e.incident import Incident, begin_incident
from tests.support.plane import until
from tests.support.sender import Sender

pytestmark = pytest.mark.timeout(900)
BEFORE = 120  # events that the pipe has sent before the draft is rehearsed
LEFT_OUT = 40  # events with a number below this are filtered out by the draft
FOLLOWED = 50
RESULTS = ("equal", "different", "only_live", "only_draft", "not_sent")


def results_of(story: Incident, shadow: str) -> dict[str, int]:
    """Return the messages to crm by result."""
    found = story.read(f"shadows/{shadow}/")["results"].get("crm", {})
    return {name: found.get(name, 0) for name in RESULTS}


def write_draft(story: Incident) -> None:
    """Open the editor and add a filter step."""
    story.page.goto(f"{story.base}/pipes/{story.id}/edit/")
    story.click(story.main.get_by_role("button", name="Add step", exact=True))
    story.main.get_by_label("Operation of step 1", exact=True).select_option("filter")
    story.fill("Keep events when of step 1", f"int(body.n) >= {LEFT_OUT}")
    story.press("Rehearse on real events …")
    story.sees("Rehearse the draft on real events")


def test_draft_is_rehearsed_on_past_events_and_live_traffic_then_promoted_without_a_loss(
    whole_box: Box, chrome: Browser, receiver: Receiver
):
    path = "/rehearsed"
    spec = {"sources": {"shop": {}}, "destinations": {"crm": {"type": "http", "url": receiver.url(path)}}}
    story = begin_incident(whole_box, chrome, "orders-rehearsed", spec)
    with Sender(story.port, story.key, 40) as sender:
        until(lambda: len(sender.acked) >= BEFORE, "events are accepted", 60)
    story.until_drained(receiver, path, lambda: sender.positions, 60)
    sent = len(receiver.got[path])
    left_out = {one.position for one in receiver.got[path] if json.loads(one.body)["n"] < LEFT_OUT}
    assert len(left_out) == LEFT_OUT

    write_draft(story)
    story.press("Start rehearsal")
    story.sees("Only live revision")
    (past,) = story.read("shadows/")["results"]
    until(lambda: story.read(f"shadows/{past['id']}/")["state"] == "done", "the past events are compared", 90)
    assert results_of(story, past["id"]) == {
        "equal": sent - LEFT_OUT, "different": 0, "only_live": LEFT_OUT, "only_draft": 0, "not_sent": 0,
    }  # fmt: skip
    story.sees("done")
    story.sees("in the draft filtered out")
    assert len(receiver.got[path]) == sent, "a rehearsal sends nothing"

    story.follow("Rehearse again …")
    story.main.get_by_label("Live traffic").check()
    story.press("Start rehearsal")
    story.sees("following live traffic")
    live = story.read("shadows/")["results"][0]
    until(lambda: story.read(f"shadows/{live['id']}/")["started_at"] is not None, "it follows", 60)
    with Sender(story.port, story.key, 20) as more:
        until(lambda: len(more.acked) >= FOLLOWED, "more events are accepted", 60)
    everything = sender.positions | more.positions
    story.until_drained(receiver, path, lambda: everything, 60)
    until(
        lambda: story.read(f"shadows/{live['id']}/")["events"] >= len(more.positions),
        "the live events are compared",
        90,
        seen=lambda: results_of(story, live["id"]),
    )
    found = results_of(story, live["id"])
    assert found["different"] == found["only_draft"] == 0
    assert found["only_live"] == min(LEFT_OUT, len(more.positions))
    assert len(receiver.got[path]) == len(everything), "each event is sent once, by the live revision"

    story.click(story.main.locator("#promote > summary"))
    story.sees("Publishes this draft as revision 2.")
    story.press("Publish revision 2")
    story.sees("Revision 2 is published.")
    until(lambda: story.read("revisions/2/")["state"] in ("ramping", "live"), "revision 2 ramps or is live", 120)
    until(lambda: story.read(f"shadows/{live['id']}/")["state"] == "stopped", "the run has ended", 60)
    assert story.read(f"shadows/{live['id']}/")["promoted"] == 2
    assert story.read("revisions/2/")["spec"]["normalize"][0]["op"] == "filter"
    story.page.goto(f"{story.base}/pipes/{story.id}/shadows/{live['id']}/")
    story.sees("This draft was published as revision 2")

    assert {name: count for name, count in story.bins().items() if count} == {"delivered": len(everything)}
    story.page.context.close()
    assert story.complaints.found == []
