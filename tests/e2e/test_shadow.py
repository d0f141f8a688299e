"""A draft in the browser: rehearsed on past events and on live traffic, promoted, and nothing is lost."""

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

import pytest
from playwright.sync_api import Browser

from loadgen.events import Payload
from loadgen.scripted import Received, Receiver
from localbox.demo.payloads import SHIPPED, read_payloads
from localbox.testing import Box
from tests.e2e.incident import Incident, begin_incident
from tests.support.patience import until
from tests.support.sender import Sender

pytestmark = pytest.mark.timeout(900)
FOLLOWED = 50  # events while the draft is rehearsed on live traffic


class StoryTraffic(NamedTuple):
    """Events of a story, and the filter that its draft adds: it keeps those with `field`, of at least `least`."""

    before: int  # events that the pipe has sent before the draft is rehearsed
    per_s: float
    field: str
    least: int | None
    events: Sequence[Payload] = ()

    @property
    def condition(self) -> str:
        """Condition of the filter."""
        return f"has(body.{self.field})" if self.least is None else f"int(body.{self.field}) >= {self.least}"

    def left_out(self, received: Sequence[Received]) -> int:
        """Return the number of messages that the filter leaves out."""
        bodies = [json.loads(one.body) for one in received]
        return sum(
            self.field not in body or (self.least is not None and body[self.field] < self.least) for body in bodies
        )


NUMBERED: Final = StoryTraffic(120, 40, "n", 40)
WEBHOOKS: Final = [
    Payload.of(json.dumps(json.loads(one.body)["payload"]).encode()) for one in read_payloads(SHIPPED)
]  # as GitHub sends them
GITHUB: Final = StoryTraffic(10_000, 400, "action", None, WEBHOOKS)
RESULTS = ("equal", "different", "only_live", "only_draft", "not_sent")


def results_of(story: Incident, shadow: str) -> dict[str, int]:
    """Return the messages to crm by result."""
    found = story.read(f"shadows/{shadow}/")["results"].get("crm", {})
    return {name: found.get(name, 0) for name in RESULTS}


def write_draft(story: Incident, condition: str) -> None:
    """Open the editor and add a filter step."""
    story.page.goto(f"{story.base}/pipes/{story.id}/edit/")
    story.click(story.main.get_by_role("button", name="Add step", exact=True))
    story.main.get_by_label("Operation of step 1", exact=True).select_option("filter")
    story.fill("Keep events when of step 1", condition)
    story.press("Rehearse on real events …")
    story.sees("Rehearse the draft on real events")


@pytest.mark.parametrize(
    "traffic",
    [pytest.param(NUMBERED, id="numbered"), pytest.param(GITHUB, id="10,000 GitHub webhooks", marks=pytest.mark.long)],
)
def test_draft_is_rehearsed_on_past_events_and_live_traffic_then_promoted_without_a_loss(
    whole_box: Box, chrome: Browser, receiver: Receiver, traffic: StoryTraffic
):
    path = f"/rehearsed-{traffic.field}"
    spec = {"sources": {"shop": {}}, "destinations": {"crm": {"type": "http", "url": receiver.url(path)}}}
    story = begin_incident(whole_box, chrome, f"orders-rehearsed-{traffic.field}", spec)
    with Sender(story.port, story.key, traffic.per_s, events=traffic.events, count=traffic.before) as sender:
        until(lambda: len(sender.acked) == traffic.before, "events are accepted", 180)
    story.until_drained(receiver, path, lambda: sender.positions, 120)
    sent = traffic.before
    left_out = traffic.left_out(receiver.got[path])
    assert 0 < left_out < sent

    write_draft(story, traffic.condition)
    story.press("Start rehearsal")
    story.sees("Only live revision")
    (past,) = story.read("shadows/")["results"]
    until(lambda: story.read(f"shadows/{past['id']}/")["state"] == "done", "the past events are compared", 180)
    assert results_of(story, past["id"]) == {
        "equal": sent - left_out, "different": 0, "only_live": left_out, "only_draft": 0, "not_sent": 0,
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
    with Sender(story.port, story.key, 20, events=traffic.events, count=FOLLOWED) as more:
        until(lambda: len(more.acked) == FOLLOWED, "more events are accepted", 60)
    everything = sender.positions | more.positions
    story.until_drained(receiver, path, lambda: everything, 60)
    until(
        lambda: story.read(f"shadows/{live['id']}/")["events"] >= FOLLOWED,
        "the live events are compared",
        90,
        seen=lambda: results_of(story, live["id"]),
    )
    found = results_of(story, live["id"])
    assert found["different"] == found["only_draft"] == 0
    assert found["only_live"] == traffic.left_out([one for one in receiver.got[path] if one.position in more.positions])
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
