"""Places of id, type and time in each sender's requests, and the reply.

The requests have the documented fields and headers; test_signatures.py covers their signatures.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import pytest

from dataplane.ingest.events import RequestEvents
from dataplane.ingest.stamp import event_time_us
from dataplane.ingest.webhooks import OpenedWebhook, read_webhook
from dataplane.webhooks import PRESETS, HeaderPlace, Reply, WebhookRequest
from dataplane.webhooks.preset import ACCEPTED, FORM, JSON, Place
from tests.support.webhook_senders import PAGERDUTY, SQUARE, STRIPE

NOW_S: Final = 1_700_000_000
RFC3339: Final = "2023-11-14T22:13:20.634234626Z"
TIME_US: Final = 1_700_000_000_634_234
EMPTY: Final = Reply(200)


@dataclass(frozen=True)
class Delivery:
    """A request of a sender, and what an event of it must have. time_us: 0 for none."""

    preset: str
    body: bytes
    id: str
    type: str
    time_us: int
    reply: Reply = ACCEPTED
    headers: dict[str, str] = field(default_factory=dict)


DELIVERIES: Final = (
    Delivery(
        "github", b"{}", "d-1", "push", 0, headers={"x-github-delivery": "d-1", "x-github-event": "push"}
    ),
    Delivery("stripe", STRIPE.body, "evt_123", "customer.created", 1_533_204_620_000_000),
    Delivery(
        "shopify", b"{}", "w-1", "orders/create", TIME_US, EMPTY,
        {
            "x-shopify-webhook-id": "w-1", "x-shopify-event-id": "e-1", "x-shopify-topic": "orders/create",
            "x-shopify-triggered-at": RFC3339,
        },
    ),
    Delivery(
        "slack", b'{"event_id":"Ev1","event":{"type":"app_mention"}}', "Ev1", "app_mention", NOW_S * 1_000_000, EMPTY,
        {"x-slack-request-timestamp": str(NOW_S)},
    ),
    Delivery(
        "twilio", b"SmsSid=7", "tok", "", 0, Reply(200, "text/xml", b"<Response/>"),
        {"content-type": FORM, "i-twilio-idempotency-token": "tok"},
    ),
    Delivery(
        "paddle", b'{"event_id":"evt_1","event_type":"customer.created","occurred_at":"' + RFC3339.encode() + b'"}',
        "evt_1", "customer.created", TIME_US, EMPTY,
    ),
    Delivery(
        "pagerduty", PAGERDUTY.body, "d-1", "incident.priority_updated", 1_619_458_587_458_000,
        headers={"x-webhook-id": "d-1"},
    ),
    Delivery(
        "square", SQUARE.body, "ac3ac95b-f97d-458c-a6e6-18981597e05f", "webhooks.test_notification",
        1_657_744_259_037_339,
    ),
    Delivery(
        "twitch", b'{"subscription":{"type":"channel.follow"}}', "m-1", "channel.follow", TIME_US,
        headers={
            "twitch-eventsub-message-id": "m-1", "twitch-eventsub-subscription-type": "channel.ban",
            "twitch-eventsub-message-timestamp": RFC3339, "twitch-eventsub-message-type": "notification",
        },
    ),
    Delivery(
        "standard-webhooks", b'{"type":"user.created"}', "msg_1", "user.created", NOW_S * 1_000_000,
        headers={"webhook-id": "msg_1", "webhook-timestamp": str(NOW_S)},
    ),
    Delivery(
        "standard-webhooks", b'{"type":"user.created"}', "msg_1", "user.created", NOW_S * 1_000_000,
        headers={"svix-id": "msg_1", "svix-timestamp": str(NOW_S)},
    ),
    Delivery(
        "cloudevents", b"{}", "/s 1", "com.example.paid", TIME_US,
        headers={
            "ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "com.example.paid", "ce-time": RFC3339,
        },
    ),
    Delivery("none", b"{}", "k-1", "", 0, headers={"idempotency-key": "k-1"}),
)  # fmt: skip


def at(place: Place, request: WebhookRequest, value: Any) -> str:
    """Return the text at a place."""
    if isinstance(place, HeaderPlace):
        return request.first(place.name) or request.first(place.other)
    for name in place.split(".") if place else ():
        value = value[name]
    return str(value) if place else ""


@pytest.mark.parametrize("sent", DELIVERIES, ids=lambda sent: sent.preset)
def test_id_type_and_time_of_an_event_are_where_its_sender_puts_them(sent: Delivery):
    preset = msgspec.structs.replace(PRESETS[sent.preset], verify=lambda *_: None)
    headers = {"content-type": JSON} | sent.headers
    request = WebhookRequest({name: [value] for name, value in headers.items()}, sent.body)
    found = read_webhook(OpenedWebhook(preset, (), preset.headers), request, NOW_S, 1_000_000)
    assert isinstance(found, RequestEvents)
    (event,) = found.items
    assert not isinstance(event, Exception)
    assert event.idempotency_key == sent.id
    assert (event_time_us(event.time) or 0) == sent.time_us
    value = json.loads(sent.body) if headers["content-type"] == JSON else None
    assert at(preset.type, request, value) == sent.type
    shown = {"cloudevents": "1", "none": ""}  # a part of the id, and a header that any sender may have
    assert at(preset.id, request, value) == shown.get(sent.preset, sent.id)
    assert preset.reply == sent.reply
    by_header = {name for name in sent.headers if name not in ("content-type", "idempotency-key")}
    assert sent.preset == "cloudevents" or event.request_headers.keys() == by_header, "headers that expressions read"


def test_each_sender_is_in_the_table():
    assert {sent.preset for sent in DELIVERIES} == set(PRESETS)


def test_signature_of_each_sender_is_kept_so_that_a_receiver_can_verify_it():
    kept = {
        name: [one for one in preset.headers if "signature" in one or "hmac" in one] for name, preset in PRESETS.items()
    }
    assert {name for name, found in kept.items() if not found} == {"cloudevents", "none"}
