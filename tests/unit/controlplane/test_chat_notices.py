"""Notices for chats and pagers have the fields that each service needs, and no text of others becomes markup."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from controlplane.observer.chat_notices import NoticeText, body_of

KEY = "a" * 32
HOSTILE = "<!channel> @here @everyone :fire: *b* [click](https://evil.example) <https://evil.example|x> & `c` ~d~ ||e||"
OPENED = NoticeText(
    alert="alert_1",
    title="crm is failing",
    facts=[("Pipe", "orders"), ("Reason", HOSTILE)],
    url="https://penstock.example/alerts/alert_1/",
    link_text="Open the alert",
    source="orders/crm",
    cause="failing",
    at=datetime(2026, 11, 1, 12, 0, tzinfo=UTC),
    is_resolved=False,
    severity="error",
)
RESOLVED = replace(OPENED, title="Resolved: crm is failing", is_resolved=True)


def texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in texts(each)]
    return [value] if isinstance(value, str) else []


def test_slack_gets_blocks_with_the_facts_and_a_link():
    body = body_of("slack", OPENED)
    header, section, link = body["blocks"]
    assert header["text"] == {"type": "plain_text", "text": "crm is failing", "emoji": False}
    assert section["fields"][0]["text"] == "*Pipe*\norders"
    assert link["text"]["text"] == "<https://penstock.example/alerts/alert_1/|Open the alert>"
    reason = section["fields"][1]["text"]
    assert "<" not in reason
    assert ">" not in reason
    assert "&lt;!channel&gt;" in reason
    assert not [mark for mark in ("@here", "@everyone", ":fire:", "*b*", "[click](", "`c`") if mark in reason]
    assert all(one["verbatim"] for one in (*section["fields"], link["text"]))


@pytest.mark.parametrize("kind", ["teams", "discord"])
def test_markup_in_texts_of_others_is_escaped(kind: str):
    (reason,) = [text for text in texts(body_of(kind, OPENED)) if "everyone" in text]
    assert "\\[click\\]" in reason
    assert "\\<\\!channel" not in reason
    assert "\\<!channel\\>" in reason
    assert "\\@everyone" in reason
    assert "\\*b\\*" in reason


def test_discord_mentions_nobody():
    assert body_of("discord", OPENED)["allowed_mentions"] == {"parse": []}


def test_teams_gets_an_adaptive_card():
    body = body_of("teams", RESOLVED)
    (attachment,) = body["attachments"]
    assert (body["type"], attachment["contentType"]) == ("message", "application/vnd.microsoft.card.adaptive")
    card = attachment["content"]
    assert (card["type"], card["body"][0]["text"], card["body"][0]["color"]) == (
        "AdaptiveCard", "Resolved: crm is failing", "Good"
    )  # fmt: skip
    assert card["actions"][0]["url"] == OPENED.url


def test_pager_incident_is_opened_and_resolved_under_one_key():
    opened, resolved = (body_of("pagerduty", one, KEY) for one in (OPENED, RESOLVED))
    assert (opened["event_action"], resolved["event_action"]) == ("trigger", "resolve")
    assert opened["dedup_key"] == resolved["dedup_key"] == "alert_1"
    assert opened["routing_key"] == resolved["routing_key"] == KEY
    assert {name: opened["payload"][name] for name in ("summary", "source", "severity")} == {
        "summary": "crm is failing",
        "source": "orders/crm",
        "severity": "error",
    }
    assert body_of("pagerduty", replace(OPENED, severity="critical"), KEY)["payload"]["severity"] == "critical"


@pytest.mark.parametrize("kind", ["slack", "teams", "discord", "pagerduty"])
def test_long_texts_are_cut_to_what_services_accept(kind: str):
    long = replace(OPENED, title="t" * 5_000, facts=[("Reason", "r" * 300)] * 8)
    assert len(json.dumps(body_of(kind, long, KEY))) < 16_000
    if kind == "slack":
        assert len(body_of(kind, long)["blocks"][0]["text"]["text"]) <= 150
        assert len(body_of(kind, long)["blocks"][1]["fields"]) <= 10
    if kind == "discord":
        assert len(body_of(kind, long)["embeds"][0]["title"]) <= 256
