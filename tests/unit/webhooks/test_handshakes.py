"""Handshakes: a sender gets back the challenge that it has sent, and nothing else does."""

import pytest

from dataplane.webhooks import PRESETS, Reply, WebhookRequest
from tests.support.webhook_senders import TWITCH

TEXT = "text/plain; charset=utf-8"
# https://docs.slack.dev/reference/events/url_verification, the example
SLACK = (
    b'{"token": "Jhj5dZrVaK7ZwHHjRyZWjbDl",'
    b' "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P", "type": "url_verification"}'
)


def handshake(preset: str, body: bytes, **headers: str) -> Reply | None:
    given = {name.replace("_", "-"): [value] for name, value in headers.items()}
    return PRESETS[preset].handshake(WebhookRequest({"content-type": ["application/json"], **given}, body))


def test_challenges_of_the_documentation_are_returned_as_text():
    reply = Reply(200, TEXT, b"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P")
    assert handshake("slack", SLACK) == reply
    assert PRESETS["twitch"].handshake(TWITCH.request()) == Reply(200, TEXT, b"pogchamp-kappa-360noscope-vohiyo")


def test_event_of_twitch_is_no_challenge_whatever_it_has():
    for type_ in ("notification", "revocation", ""):
        assert PRESETS["twitch"].handshake(TWITCH.request(twitch_eventsub_message_type=type_)) is None


@pytest.mark.parametrize(
    "challenge",
    [b'""', b'"' + b"x" * 1_025 + b'"', b"7", b"null", b'"x', b'"\xff"'],
    ids=lambda one: one[:8].decode("latin-1"),
)
def test_challenge_that_is_missing_too_long_or_no_text_is_not_returned(challenge: bytes):
    body = b'{"type": "url_verification", "challenge": ' + challenge + b"}"
    assert handshake("slack", body) is None
    assert handshake("twitch", body, twitch_eventsub_message_type="webhook_callback_verification") is None


def test_receiver_of_cloudevents_agrees_to_any_rate():
    """Source: https://github.com/cloudevents/spec/blob/main/cloudevents/http-webhook.md, 4.2."""
    asked = WebhookRequest(
        {"webhook-request-origin": ["eventemitter.example.com"], "webhook-request-rate": ["120"]}, b""
    )
    assert PRESETS["cloudevents"].options(asked) == Reply(
        200,
        headers=(
            ("webhook-allowed-origin", "eventemitter.example.com"),
            ("webhook-allowed-rate", "*"),
            ("allow", "POST"),
        ),
    )
    assert PRESETS["cloudevents"].options(WebhookRequest({}, b"")) is None


def test_only_cloudevents_answer_options_and_only_slack_and_twitch_have_challenges():
    asked = WebhookRequest({"webhook-request-origin": ["a.example"]}, b"")
    assert [name for name, preset in PRESETS.items() if preset.options(asked)] == ["cloudevents"]
    body = b'{"type": "url_verification", "challenge": "c"}'
    header = {"twitch_eventsub_message_type": "webhook_callback_verification"}
    assert [name for name in PRESETS if handshake(name, body, **header)] == ["slack", "twitch"]
