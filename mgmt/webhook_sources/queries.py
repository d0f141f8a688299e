"""Webhook settings of sources, as pages and API show them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from dataplane.names import WEBHOOK_PATH
from dataplane.spec.keys import URL_PREFIX
from dataplane.webhooks import PRESETS, HeaderPlace, Preset
from dataplane.webhooks.preset import Place
from mgmt.expiry import unexpired
from mgmt.ledger.queries.bucket_range import BucketRange
from mgmt.models import ApiKey, Source, SourceWebhook
from mgmt.rejections.queries import RejectionLine, rejection_lines


@dataclass(frozen=True)
class SenderGuide:
    """Instructions for the sender's site.

    where:     place of the URL
    secret:    the sender's name of the secret
    url_first: True if the sender shows the secret only for a URL that it knows
    """

    where: str
    secret: str = ""
    url_first: bool = False


GUIDES: Final[Mapping[str, SenderGuide]] = {
    "github": SenderGuide(
        "In the repository or organization: Settings, Webhooks, Add webhook. Enter the URL as the payload URL, choose "
        "the content type application/json, and enter a secret.",
        "the one that you enter there",
    ),
    "stripe": SenderGuide(
        "In the dashboard: Developers, Webhooks, Add destination. Choose the events and enter the URL as the endpoint.",
        "the signing secret of the endpoint, which begins with whsec_",
        url_first=True,
    ),
    "shopify": SenderGuide(
        "In the admin: Settings, Notifications, Webhooks, Create webhook. For an app, enter the URL as the address of "
        "the subscription.",
        "the secret shown below the list of webhooks; for an app its client secret",
        url_first=True,
    ),
    "slack": SenderGuide(
        "In the settings of the app: enter the URL as the request URL of Event Subscriptions, Interactivity or a slash "
        "command. Slack checks it at once.",
        "the signing secret under Basic Information",
    ),
    "twilio": SenderGuide(
        "In the console: enter the URL as the webhook of the phone number, messaging service or status callback, with "
        "the method HTTP POST.",
        "the auth token of the account",
    ),
    "paddle": SenderGuide(
        "In the dashboard: Developer tools, Notifications, New destination. Choose the type webhook and enter the URL.",
        "the secret key of the destination, which begins with pdl_",
        url_first=True,
    ),
    "pagerduty": SenderGuide(
        "In the web app: Integrations, Generic Webhooks (v3), New Webhook. Enter the URL as the webhook URL.",
        "shown once, after the webhook is added",
        url_first=True,
    ),
    "square": SenderGuide(
        "In the developer console: the application, Webhooks, Subscriptions, Add subscription. Enter the URL as the "
        "notification URL.",
        "the signature key of the subscription",
        url_first=True,
    ),
    "twitch": SenderGuide(
        "By Twitch's API: create an EventSub subscription with the transport method webhook and the URL as callback. "
        "Save the secret here first: Twitch checks the URL immediately.",
        "the one that you send as the transport's secret, 10 to 100 characters",
    ),
    "standard-webhooks": SenderGuide(
        "At the sender: add an endpoint with the URL. Senders that use Svix sign in the same way.",
        "the signing secret of the endpoint, which begins with whsec_",
        url_first=True,
    ),
    "cloudevents": SenderGuide(
        "At the sender: enter the URL as the sink, and the secret as its bearer token. Penstock responds to the "
        "handshake.",
        "a bearer token, if the sender sends one",
    ),
    "none": SenderGuide("At the sender: enter the URL. Anyone who knows it can post events, so keep it secret."),
}


@dataclass(frozen=True)
class SourceUrl:
    """A URL of a source that is neither revoked nor expired. `shown`: its beginning; the rest is secret."""

    shown: str
    label: str


def urls_of(source: Source, ingest_url: str, now: datetime) -> list[SourceUrl]:
    """Return the URLs of a source that accept requests, the newest first."""
    keys = ApiKey.objects.filter(unexpired(now), source=source, prefix__startswith=URL_PREFIX, revoked_at=None)
    return [SourceUrl(url_of(ingest_url, key.prefix), key.label) for key in keys.order_by("-created_at")]


def refused_deliveries(source: Source, span: BucketRange) -> list[RejectionLine]:
    """Return the kinds of requests to a source that ingest refused in a range, the most frequent first."""
    return [line for line in rejection_lines(source.pipe, span) if line.row.source == source.name]


def webhook_of(source: Source) -> SourceWebhook | None:
    """Return the webhook settings of a source; None if it has none."""
    return SourceWebhook.objects.filter(source=source).first()


def preset_of(row: SourceWebhook) -> Preset:
    """Return the preset of webhook settings."""
    return PRESETS[row.preset]


def url_of(ingest_url: str, secret: str) -> str:
    """Return the URL with a secret part."""
    return f"{ingest_url}{WEBHOOK_PATH}{secret}"


def place_words(place: Place) -> str:
    """Return where a value is, in words; "" for nowhere."""
    if isinstance(place, HeaderPlace):
        return f"the header {place.name}" + (f" or {place.other}" if place.other else "")
    return f"the field {place}" if place else ""
