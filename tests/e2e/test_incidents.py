"""Incidents from the alert to the cause, the fix and the end, on the pages alone: each in fewer than ten clicks and
filled fields, and every accepted message is delivered.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import pytest
from playwright.sync_api import Browser

from loadgen.scripted import Receiver
from localbox.testing import Box
from tests.e2e.incident import begin_incident
from tests.support.behaviours import asking_for, late
from tests.support.patience import until
from tests.support.sender import Sender

pytestmark = pytest.mark.timeout(900)
DRAINED_S: Final = 120
OVER_MS: Final = 300_000  # an alert about failed attempts counts those of the last three minutes


def spec_of(url: str, *, routes: dict[str, Any] | None = None, **settings: Any) -> dict[str, Any]:
    """Return a spec with one destination."""
    destinations = {"crm": {"type": "http", "url": url, **settings}}
    return {"sources": {"shop": {}}, "destinations": destinations} | ({"routes": routes} if routes else {})


def answered(receiver: Receiver, path: str, status: int) -> Callable[[], int]:
    return lambda: sum(one.answered == status for one in receiver.got[path])


@pytest.mark.long
def test_destination_that_answers_500_is_found_and_its_backlog_is_delivered(
    whole_box: Box, chrome: Browser, receiver: Receiver
):
    path = "/fails"
    receiver.answers[path] = 500
    incident = begin_incident(whole_box, chrome, "fails", spec_of(receiver.url(path)))
    with Sender(incident.port, incident.key, 60) as sender:
        incident.begin()
        incident.open_alert("crm: attempts are failing")
        incident.sees("Messages wait and are retried. None is lost.")
        incident.sees("Returned 500")
        incident.follow("View attempts")
        incident.sees("500")
        incident.back()
        receiver.answers[path] = 204  # its owner has repaired it
        incident.sees("Deliveries succeed again.", OVER_MS)
    incident.until_drained(receiver, path, lambda: sender.positions, DRAINED_S)
    incident.end(actions=4)


def test_destination_that_answers_401_gets_its_new_credential_and_everything_held(
    whole_box: Box, chrome: Browser, receiver: Receiver
):
    path, refused = "/asks", answered(receiver, "/asks", 401)
    receiver.answers[path] = asking_for("authorization", lambda: {"Bearer new-token"})
    spec = spec_of(receiver.url(path), auth={"type": "bearer"})
    incident = begin_incident(whole_box, chrome, "asks", spec, {"crm": {"value": "old-token"}})
    with Sender(incident.port, incident.key, 20) as sender:
        until(lambda: incident.bins().get("held", 0) > 20, "it is suspended and its messages are held", 90)
        before = refused()
        incident.begin()
        incident.open_alert("crm: returned 401")
        incident.sees("enter the new ones on the destination's page")
        incident.follow("Destination crm")
        incident.fill("Secret value", "new-token")
        incident.press("Replace secret")
        incident.follow("crm: returned 401")
        incident.press("Send one message, then release the rest")
        incident.sees("The probe was accepted", DRAINED_S * 1_000)
    incident.until_drained(receiver, path, lambda: sender.positions, DRAINED_S)
    assert refused() == before, "no message was sent with the old credential after the advice was followed"
    incident.end(actions=7)


@pytest.mark.long
def test_rule_that_fails_is_fixed_and_what_died_runs_again(whole_box: Box, chrome: Browser, receiver: Receiver):
    path = "/routed"
    rule = {"when": "double(body.total) > 10.0", "to": ["crm"]}
    routes = {"rules": [rule], "otherwise": ["crm"]}
    incident = begin_incident(whole_box, chrome, "routed", spec_of(receiver.url(path), routes=routes))
    with Sender(incident.port, incident.key, 60) as sender:  # its events have no field "total"
        until(lambda: incident.bins().get("held", 0) > 20, "the pipe is paused and holds its messages", 90)
        incident.begin()
        incident.open_alert("Too many messages fail in the pipe's steps")
        dead = incident.bins()["dead"]
        incident.follow("Edit pipe")
        incident.fill("When of rule 1", "has(body.total) && double(body.total) > 10.0")
        incident.press("Publish revision 2")
        incident.press("Resume")
    until(lambda: incident.bins()["held"] == 0, "what was held is processed", DRAINED_S)
    assert incident.bins()["dead"] == dead, "none has died after the advice was followed"
    incident.follow("Dead letters")
    incident.follow("Run again through @2 …")
    incident.press(re.compile(r"^Run .+ again through @2"))
    incident.until_drained(receiver, path, lambda: sender.positions, DRAINED_S)
    incident.end(actions=9)


@pytest.mark.long
def test_slow_destination_gets_more_concurrent_requests_and_catches_up(
    whole_box: Box, chrome: Browser, receiver: Receiver
):
    path = "/slow"
    receiver.answers[path] = late(0.4)
    incident = begin_incident(whole_box, chrome, "slow", spec_of(receiver.url(path), concurrency=1))
    with Sender(incident.port, incident.key, 20) as sender:
        incident.begin()
        incident.open_alert("crm: messages wait for longer than ten minutes")
        incident.sees("raise its concurrency or rate limit in the delivery settings")
        incident.follow("Destination crm")
        incident.follow("Delivery settings")
        incident.fill("Concurrent requests", "64")
        incident.press("Publish settings")
        until(lambda: incident.read("")["live_revision"] == 2, "the new settings are live", 90)
    incident.until_drained(receiver, path, lambda: sender.positions, DRAINED_S)
    until(lambda: incident.state_of_alert("delayed") == "resolved", "its alert ends", 120)
    incident.end(actions=6)
