"""Senders of webhooks: how each signs its requests, shakes hands, and names an event. Pure: the time is an argument."""

from collections.abc import Mapping
from typing import Final

from dataplane.webhooks.cloudevents import CLOUDEVENTS
from dataplane.webhooks.github import GITHUB
from dataplane.webhooks.paddle import PADDLE
from dataplane.webhooks.pagerduty import PAGERDUTY
from dataplane.webhooks.plain import NONE
from dataplane.webhooks.preset import HeaderPlace, Preset
from dataplane.webhooks.request import Reply, UnverifiedError, WebhookRequest
from dataplane.webhooks.shopify import SHOPIFY
from dataplane.webhooks.slack import SLACK
from dataplane.webhooks.square import SQUARE
from dataplane.webhooks.standard_webhooks import STANDARD_WEBHOOKS
from dataplane.webhooks.stripe import STRIPE
from dataplane.webhooks.twilio import TWILIO
from dataplane.webhooks.twitch import TWITCH

PRESETS: Final[Mapping[str, Preset]] = {
    preset.name: preset
    for preset in (
        GITHUB,
        STRIPE,
        SHOPIFY,
        SLACK,
        TWILIO,
        PADDLE,
        PAGERDUTY,
        SQUARE,
        TWITCH,
        STANDARD_WEBHOOKS,
        CLOUDEVENTS,
        NONE,
    )
}

__all__ = ["PRESETS", "HeaderPlace", "Preset", "Reply", "UnverifiedError", "WebhookRequest"]
