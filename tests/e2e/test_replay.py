"""A replay in the browser: rehearsed, sent to the destination once more, and counted apart from the originals."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Browser, expect

from loadgen.scripted import Received, Receiver
from localbox.testing import Box
from tests.e2e.incident import begin_incident
from tests.support.patience import until
from tests.support.sender import Sender

pytestmark = pytest.mark.timeout(900)
WANTED = 60


def of_replays(receiver: Receiver, path: str) -> list[Received]:
    return [one for one in receiver.got[path] if "penstock-replay" in one.headers]


def moment(at: datetime) -> str:
    """Return a time as the form's fields have it."""
    return at.strftime("%Y-%m-%dT%H:%M:%S")


def test_lost_orders_are_replayed_after_a_rehearsal_and_counted_apart(
    whole_box: Box, chrome: Browser, receiver: Receiver
):
    path = "/orders"
    spec = {"sources": {"shop": {}}, "destinations": {"crm": {"type": "http", "url": receiver.url(path)}}}
    story = begin_incident(whole_box, chrome, "orders-again", spec)
    since = datetime.now(UTC) - timedelta(minutes=5)
    with Sender(story.port, story.key, 40) as sender:
        until(lambda: len(sender.acked) >= WANTED * 3, "events are accepted", 60)
    story.until_drained(receiver, path, lambda: sender.positions, 60)
    originals = {one.position: one for one in receiver.got[path]}
    lost = {one.position for one in originals.values() if json.loads(one.body)["n"] < WANTED}
    assert len(lost) == WANTED

    story.page.goto(f"{story.base}/pipes/{story.id}/replays/new/")
    story.fill("From", moment(since))
    story.fill("To", moment(datetime.now(UTC)))
    story.fill("Filter expression (optional)", f"int(body.n) < {WANTED}")
    story.press("Rehearse")
    story.sees(f"It would send {WANTED} messages")
    assert of_replays(receiver, path) == [], "a rehearsal sends nothing"
    story.follow("Run it for real …")
    story.press("Start replay …")
    story.sees("Start this replay?")
    story.press("Start replay")
    story.sees("Nothing failed.")
    expect(story.main.get_by_role("region", name="Messages by destination and outcome")).to_contain_text(str(WANTED))

    copies = of_replays(receiver, path)
    (replay, rehearsal) = story.read("replays/")["results"]
    assert {one.headers["penstock-replay"] for one in copies} == {replay["id"]}
    assert sorted(one.position for one in copies) == sorted(lost), "each is sent once"
    assert all((one.id, one.body) == (originals[one.position].id, originals[one.position].body) for one in copies)
    assert (rehearsal["rehearsal"], replay["rehearsal"]) == (True, False)
    account = story.read(f"replays/{replay['id']}/")["account"]
    assert replay["asked"] == account["asked"] == account["bins"]["delivered"] == WANTED
    assert sum(account["bins"].values()) == WANTED, "asked = delivered, and nothing is in another bin"
    assert {name: count for name, count in story.bins().items() if count} == {"delivered": len(originals)}
    story.page.context.close()
    assert story.complaints.found == []
