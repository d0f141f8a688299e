"""Bodies of notices for chats and pagers, each in the format of its service. Pure.

Names and reasons come from customers and their destinations: no text may mention people, format itself or hide a link.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

MOST_CHARS: Final = 300  # of a fact; Slack's header takes 150, a field 2,000
PAGER_URLS: Final = {
    "pagerduty": "https://events.pagerduty.com/v2/enqueue",
    "pagerduty-eu": "https://events.eu.pagerduty.com/v2/enqueue",
}
_RED: Final = 0xC0392B
_GREEN: Final = 0x2E7D32
_GREY: Final = 0x757575
_MARKUP: Final = re.compile(r"([\\*_~`|\[\]<>#@])")


class NoticeText(Struct, frozen=True):
    """Notice in words.

    alert:    id; all notices of an alert share it
    facts:    pairs of a name and a value
    source:   what is affected: a pipe, or one of its destinations
    severity: critical, error or info
    """

    alert: str
    title: str
    facts: Sequence[tuple[str, str]]
    url: str
    link_text: str
    source: str
    cause: str
    at: datetime
    is_resolved: bool
    severity: str


def body_of(kind: str, notice: NoticeText, key: str = "") -> dict[str, Any]:
    """Return the JSON body for one kind of chat or pager. `key`: integration key of a pager."""
    if kind == "slack":
        return _slack(notice)
    if kind == "teams":
        return _teams(notice)
    if kind == "discord":
        return _discord(notice)
    return _pager(notice, key)


def _slack(notice: NoticeText) -> dict[str, Any]:
    """https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks (read 2026-11)."""
    title = notice.title[:150]
    text = {"type": "mrkdwn", "verbatim": True}  # Slack looks for names and links in other texts
    fields = [text | {"text": f"*{_slack_text(name)}*\n{_slack_text(value)}"} for name, value in notice.facts]
    return {
        "text": _slack_text(title),
        "blocks": [
            {"type": "header", "text": {"type": "plain_text", "text": title, "emoji": False}},
            {"type": "section", "fields": fields},
            {"type": "section", "text": text | {"text": f"<{notice.url}|{notice.link_text}>"}},
        ],
    }


def _teams(notice: NoticeText) -> dict[str, Any]:
    """Adaptive card, as the webhook trigger of Workflows takes it."""
    color = "Good" if notice.is_resolved else "Default" if notice.severity == "info" else "Attention"
    title = {"type": "TextBlock", "size": "Medium", "weight": "Bolder", "wrap": True, "color": color}
    facts = [{"title": _plain(name), "value": _plain(value)} for name, value in notice.facts]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.2",
        "body": [title | {"text": _plain(notice.title)}, {"type": "FactSet", "facts": facts}],
        "actions": [{"type": "Action.OpenUrl", "title": notice.link_text, "url": notice.url}],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


def _discord(notice: NoticeText) -> dict[str, Any]:
    fields = [{"name": _plain(name), "value": _plain(value), "inline": True} for name, value in notice.facts]
    embed = {
        "title": _plain(notice.title)[:256],
        "url": notice.url,
        "color": _GREEN if notice.is_resolved else _GREY if notice.severity == "info" else _RED,
        "fields": fields,
        "timestamp": notice.at.isoformat(),
    }
    return {"username": "Penstock", "embeds": [embed], "allowed_mentions": {"parse": []}}


def _pager(notice: NoticeText, key: str) -> dict[str, Any]:
    """Events API v2: the resolution has the key of the alert, and so ends the incident that it opened."""
    same = {"routing_key": key, "dedup_key": notice.alert}
    if notice.is_resolved:
        return same | {"event_action": "resolve"}
    return same | {
        "event_action": "trigger",
        "client": "Penstock",
        "client_url": notice.url,
        "links": [{"href": notice.url, "text": notice.link_text}],
        "payload": {
            "summary": notice.title[:1_024],
            "source": notice.source,
            "severity": notice.severity,
            "timestamp": notice.at.isoformat(),
            "class": notice.cause,
            "custom_details": dict(notice.facts),
        },
    }


def _slack_text(text: str) -> str:
    """Escape what Slack reads as a mention or a link, and separate marks from words by an invisible word joiner."""
    text = text[:MOST_CHARS].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([*_~`@#:\[\]])", "\u2060\\1\u2060", text)


def _plain(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text[:MOST_CHARS])
