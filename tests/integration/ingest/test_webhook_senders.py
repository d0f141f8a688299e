"""Requests of webhook senders over real sockets: verified as they were sent, answered, and stored in a real topic."""

import base64
import hashlib
import hmac
import http.client
import json
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest

from dataplane.addresses import DEFAULT_INGEST
from tests.support.cluster import key_of
from tests.support.live_ingest import LiveIngest, live_ingest
from tests.support.webhook_senders import FORM, JSON, base64_hmac, hex_hmac

SECRET = "shared-with-the-sender"
PRESETS = ("github", "twilio", "shopify", "slack", "twitch", "cloudevents")
Lines = Sequence[tuple[str, str]]


class Answer:
    """Response to one request."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status, self.body = answer.status, answer.read()
        self.headers = {name.lower(): value for name, value in answer.getheaders()}
        self.media_type = self.headers.get("content-type", "")

    @property
    def problem(self) -> tuple[int, str]:
        """Status and code of a refusal."""
        return self.status, str(json.loads(self.body)["code"])


@pytest.fixture(scope="module")
def ingest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveIngest]:
    with live_ingest(tmp_path_factory.mktemp("ingest")) as made:
        yield made


@pytest.fixture(scope="module")
def urls(ingest: LiveIngest) -> dict[str, str]:
    """Path of the URL of each sender; each has a pipe of its own, named like the preset."""
    paths = {preset: ingest.add_url(preset, preset, SECRET, "x-extra") for preset in PRESETS}
    for preset in PRESETS:
        ingest.accept(preset, "ten_hooks", key_of(preset))
    return paths


def send(ingest: LiveIngest, path: str, body: bytes, lines: Lines, method: str = "POST") -> Answer:
    """Send a request with exactly these header lines, duplicates included, in this order."""
    connection = http.client.HTTPConnection(urlsplit(ingest.url).netloc, timeout=30)
    try:
        connection.putrequest(method, path)
        for name, value in (*lines, ("Content-Length", str(len(body)))):
            connection.putheader(name, value)
        connection.endheaders(body)
        return Answer(connection.getresponse())
    finally:
        connection.close()


def test_json_of_github_is_verified_and_stored_byte_by_byte(ingest: LiveIngest, urls: dict[str, str]):
    body = b'{ "ref" : "refs/heads/main",  "n": 1.0e0 }'
    signature = "sha256=" + hex_hmac(SECRET, body)
    named = [("Content-Type", JSON), ("X-GitHub-Event", "push"), ("X-GitHub-Delivery", "d-1"), ("X-Other", "o")]
    before = len(ingest.stored("github"))
    answer = send(ingest, urls["github"], body, [*named, ("X-Hub-Signature-256", signature), ("X-EXTRA", "e")])
    assert (answer.status, json.loads(answer.body)["status"]) == (202, 202)
    changed = send(ingest, urls["github"], body + b" ", [*named, ("X-Hub-Signature-256", signature)])
    assert changed.problem == (401, "signature-invalid")
    [(stored, meta, headers)] = ingest.stored("github")[before:]
    assert stored == body
    assert (meta.source, meta.idempotency_key) == ("shop", "d-1")
    assert meta.request_headers == {
        "x-github-event": "push",
        "x-github-delivery": "d-1",
        "x-hub-signature-256": signature,
        "x-extra": "e",
    }
    assert dict(headers)["content-type"] == JSON.encode()


def test_signature_that_is_sent_twice_is_refused(ingest: LiveIngest, urls: dict[str, str]):
    """One of two header lines would be verified, and the other one might be what a proxy added or logged."""
    body = b"{}"
    right, wrong = "sha256=" + hex_hmac(SECRET, body), "sha256=" + "0" * 64
    before = len(ingest.stored("github"))
    for given in ((right, wrong), (wrong, right), (right, right)):
        lines = [("Content-Type", JSON), *(("X-Hub-Signature-256", one) for one in given)]
        answer = send(ingest, urls["github"], body, lines)
        assert answer.problem == (401, "signature-invalid")
        assert "once, got 2" in json.loads(answer.body)["detail"]
    repeated = [("X-Hub-Signature-256", right), ("X-Extra", "first"), ("x-extra", "second")]
    assert send(ingest, urls["github"], body, [("Content-Type", JSON), *repeated]).status == 202
    [(_, meta, _)] = ingest.stored("github")[before:]
    assert meta.request_headers["x-extra"] == "first"


def test_form_of_twilio_is_verified_by_the_public_url_and_stored_as_json(ingest: LiveIngest, urls: dict[str, str]):
    """Ingest listens on another port than its public URL names, as behind a proxy; Twilio signs the public one."""
    body, query = b"SmsSid=7&Body=hello+there&Body=again", "?shop=a%20b&x=1"
    signed = f"{DEFAULT_INGEST}{urls['twilio']}{query}BodyagainBodyhello thereSmsSid7"
    lines = [
        ("Content-Type", f"{FORM}; charset=utf-8"),
        ("I-Twilio-Idempotency-Token", "tok"),
        ("X-Twilio-Signature", base64_hmac(SECRET.encode(), signed.encode(), "sha1")),
    ]
    before = len(ingest.stored("twilio"))
    answer = send(ingest, urls["twilio"] + query, body, lines)
    assert (answer.status, answer.media_type, answer.body) == (200, "text/xml", b"<Response/>")
    assert send(ingest, urls["twilio"], body, lines).problem == (401, "signature-invalid")
    [(stored, meta, headers)] = ingest.stored("twilio")[before:]
    assert json.loads(stored) == {"SmsSid": "7", "Body": ["hello there", "again"]}
    assert meta.idempotency_key == "tok"
    assert dict(headers)["content-type"] == JSON.encode()


def test_xml_of_shopify_is_verified_and_stored_as_json(ingest: LiveIngest, urls: dict[str, str]):
    body = '<?xml version="1.0"?><order id="7"><item>tea</item><item>Käse</item></order>'.encode()
    digest = base64.b64encode(hmac.new(SECRET.encode(), body, hashlib.sha256).digest()).decode()
    lines = [("Content-Type", "application/xml"), ("X-Shopify-Hmac-SHA256", digest), ("X-Shopify-Webhook-Id", "w-1")]
    before = len(ingest.stored("shopify"))
    answer = send(ingest, urls["shopify"], body, lines)
    assert (answer.status, answer.body) == (200, b"")
    [(stored, meta, _)] = ingest.stored("shopify")[before:]
    assert json.loads(stored) == {"order": {"@id": "7", "item": ["tea", "Käse"]}}
    assert meta.idempotency_key == "w-1"


def test_challenge_of_slack_is_returned_and_its_event_is_stored(ingest: LiveIngest, urls: dict[str, str]):
    def slack(body: bytes, secret: str = SECRET) -> Answer:
        now = str(int(time.time()))
        signature = "v0=" + hex_hmac(secret, f"v0:{now}:".encode() + body)
        lines = [("Content-Type", JSON), ("X-Slack-Request-Timestamp", now), ("X-Slack-Signature", signature)]
        return send(ingest, urls["slack"], body, lines)

    before = len(ingest.stored("slack"))
    asked = b'{"token": "t", "challenge": "3eZbrw1aBm2rZgRNFdxV", "type": "url_verification"}'
    assert slack(asked, "another-secret").problem == (401, "signature-invalid")
    answer = slack(asked)
    assert (answer.status, answer.media_type) == (200, "text/plain; charset=utf-8")
    assert answer.body == b"3eZbrw1aBm2rZgRNFdxV"
    event = slack(b'{"type": "event_callback", "event_id": "Ev1", "event": {"type": "app_mention"}}')
    assert (event.status, event.body) == (200, b"")
    assert [meta.idempotency_key for _, meta, _ in ingest.stored("slack")[before:]] == ["Ev1"]


def test_challenge_of_twitch_is_returned_and_its_event_is_stored(ingest: LiveIngest, urls: dict[str, str]):
    def twitch(kind: str, body: bytes, secret: str = SECRET) -> Answer:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000000000Z")
        lines = {
            "Content-Type": JSON,
            "Twitch-Eventsub-Message-Id": "m-1",
            "Twitch-Eventsub-Message-Timestamp": now,
            "Twitch-Eventsub-Message-Type": kind,
            "Twitch-Eventsub-Subscription-Type": "channel.follow",
            "Twitch-Eventsub-Message-Signature": "sha256=" + hex_hmac(secret, f"m-1{now}".encode() + body),
        }
        return send(ingest, urls["twitch"], body, list(lines.items()))

    before = len(ingest.stored("twitch"))
    asked = ("webhook_callback_verification", b'{"challenge": "pogchamp-kappa-360noscope-vohiyo"}')
    assert twitch(*asked, "another-secret").problem == (401, "signature-invalid")
    answer = twitch(*asked)
    assert (answer.status, answer.media_type) == (200, "text/plain; charset=utf-8")
    assert answer.body == b"pogchamp-kappa-360noscope-vohiyo"
    assert twitch("notification", b'{"event": {"user_id": "1"}}').status == 202
    [(stored, meta, _)] = ingest.stored("twitch")[before:]
    assert (stored, meta.idempotency_key) == (b'{"event": {"user_id": "1"}}', "m-1")
    assert meta.request_headers["twitch-eventsub-subscription-type"] == "channel.follow"


def test_handshake_of_cloudevents_is_answered_to_options(ingest: LiveIngest, urls: dict[str, str]):
    before = len(ingest.stored("cloudevents"))
    lines = [("WebHook-Request-Origin", "events.example.com"), ("WebHook-Request-Rate", "120")]
    answer = send(ingest, urls["cloudevents"], b"", lines, "OPTIONS")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["webhook-allowed-origin"] == "events.example.com"
    assert answer.headers["webhook-allowed-rate"] == "*"
    assert answer.headers["allow"] == "POST"
    assert send(ingest, urls["github"], b"", lines, "OPTIONS").problem == (405, "method-not-allowed")
    assert ingest.stored("cloudevents")[before:] == []


def test_url_is_no_key_and_other_urls_and_methods_are_refused(ingest: LiveIngest, urls: dict[str, str]):
    part = urls["github"].rpartition("/")[2]
    events = send(ingest, "/v1/events", b"{}", [("Content-Type", JSON), ("Authorization", f"Bearer {part}")])
    assert events.problem == (401, "key-invalid")
    key = send(ingest, f"/v1/hooks/{key_of('github')}", b"{}", [("Content-Type", JSON)])
    assert key.problem == (404, "not-found")
    assert send(ingest, urls["github"], b"", [], "GET").problem == (405, "method-not-allowed")
