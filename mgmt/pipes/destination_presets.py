"""Presets of HTTP destinations: what another service documents for its API, as a part of a spec. Pure data.

A preset fills in a destination once, in the editor or as code. Afterwards it is an ordinary `http` destination.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

# A wrong key concerns every message, so messages wait until it is corrected, instead of becoming dead letters.
_KEY_REFUSED: Final = [{"when": {"status": status}, "then": "retry"} for status in ("401", "403")]


@dataclass(frozen=True)
class DestinationPreset:
    """Preset of one API.

    todo:       what the customer enters, in a sentence
    source:     URL of the documentation that it follows
    answers:    the answers that are retried, in a sentence
    url_is_own: each customer has a URL of its own, so `document` has an example
    document:   the destination as in a spec
    """

    name: str
    title: str
    todo: str
    source: str
    answers: str
    url_is_own: bool
    document: Mapping[str, Any]


def _text(field: str, otherwise: str) -> str:
    """Return the member of a body with a field of the event as text; `otherwise`: expression for events without it."""
    return f'"{field}": has(body.{field}) && body.{field} != null ? string(body.{field}) : {otherwise}'


def _object(*members: str) -> str:
    """Return the expression of an object with these members, one a line."""
    return "{\n  " + ",\n  ".join(members) + "\n}"


def _if_alert(types: str, then: str, otherwise: str) -> str:
    """Return an expression that is `then` for operational events about an alert, of a type that fits `types`."""
    return f"has(body.type) && {types} && has(body.data) && has(body.data.alert) ? {then} : {otherwise}"


_SUMMARY: Final = '"Event " + meta.id + " from " + meta.source'
_IS_ALERT: Final = 'body.type in ["penstock.alert.opened", "penstock.alert.resolved"]'
_PAGERDUTY: Final = _object(
    _text("summary", _SUMMARY),
    _text("source", "meta.source"),
    _text("severity", '"error"'),
    '"timestamp": meta.event_time',
    '"custom_details": body',
)
_DATADOG: Final = _object(
    '"ddsource": "penstock"',
    '"ddtags": "pipe:" + meta.pipe',
    _text("hostname", "meta.source"),
    _text("service", "meta.source"),
    _text("message", _SUMMARY),
    '"event": body',
)
PRESETS: Final = (
    DestinationPreset(
        name="pagerduty",
        title="PagerDuty, Events API v2",
        todo="Put the integration key of the service in place of YOUR-INTEGRATION-KEY in the body. The incident of an "
        'alert of Penstock ends with the alert. Set "ordered", so that "resolve" is never sent before "trigger".',
        source="https://developer.pagerduty.com/docs/events-api-v2/trigger-events/",
        answers="429, 5xx",
        url_is_own=False,
        document={
            "type": "http",
            "url": "https://events.pagerduty.com/v2/enqueue",
            "template": {
                "body": _object(
                    '"routing_key": "YOUR-INTEGRATION-KEY"',
                    '"event_action": ' + _if_alert('body.type == "penstock.alert.resolved"', '"resolve"', '"trigger"'),
                    '"dedup_key": ' + _if_alert(_IS_ALERT, "body.data.alert", "meta.id"),
                    '"payload": ' + _PAGERDUTY.replace("\n", "\n  "),
                )
            },
        },
    ),
    DestinationPreset(
        name="slack",
        title="Slack, incoming webhook",
        todo="Enter the URL of the webhook, which Slack shows once the app has been added to a channel.",
        source="https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks",
        answers="429, 5xx",
        url_is_own=True,
        document={
            "type": "http",
            "url": "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
            "rate_per_s": 1.0,
            "template": {"body": _object(_text("text", _SUMMARY))},
        },
    ),
    DestinationPreset(
        name="datadog-logs",
        title="Datadog, logs",
        todo="Set the host of your Datadog site in the URL. After you publish, enter the API key on the page of the "
        "destination.",
        source="https://docs.datadoghq.com/api/latest/logs/send-logs/",
        answers="401 and 403 (a wrong key), 408, 429, 5xx",
        url_is_own=False,
        document={
            "type": "http",
            "url": "https://http-intake.logs.datadoghq.com/api/v2/logs",
            "auth": {"type": "header", "name": "DD-API-KEY"},
            "rules": [*_KEY_REFUSED, {"when": {"status": "408"}, "then": "retry"}],
            "template": {
                "body": f"[{_DATADOG}]",
            },
        },
    ),
    DestinationPreset(
        name="splunk-hec",
        title="Splunk, HTTP Event Collector",
        todo="Enter the URL of your collector. After you publish, enter the word Splunk, a space and the token "
        "on the page of the destination.",
        source="https://help.splunk.com/splunk-enterprise/get-data-in/collect-http-event-data/"
        "format-events-for-http-event-collector",
        answers="401 and 403 (a wrong token), 429, 5xx",
        url_is_own=True,
        document={
            "type": "http",
            "url": "https://splunk.example.com:8088/services/collector/event",
            "auth": {"type": "header", "name": "Authorization"},
            "rules": list(_KEY_REFUSED),
            "template": {
                "body": _object(
                    '"time": int(meta.event_time)',
                    _text("host", "meta.source"),
                    '"source": meta.source',
                    '"sourcetype": "_json"',
                    '"event": body',
                )
            },
        },
    ),
)
_BY_NAME: Final = {preset.name: preset for preset in PRESETS}


def preset_named(name: str) -> DestinationPreset | None:
    """Return the preset with this name; None (a plain destination) for any other."""
    return _BY_NAME.get(name)
