"""A request at a source's webhook URL: verified before it is parsed, converted, answered as its sender expects."""

import base64
import gzip
import json
import time
from functools import partial
from typing import Any

import pytest
from cryptography.fernet import Fernet

from dataplane.ingest.app import IngestApp
from dataplane.ledger.rejections import RejectionReport
from dataplane.spec.keys import RANDOM_BYTES, URL_PREFIX, key_digest, key_text
from dataplane.tables.records import ApiKeyRecord, PipeRecord, Record, WebhookRecord
from dataplane.tables.sealed import bind, webhook_place
from tests.support.http_exchange import MemoryExchange
from tests.support.typed_ingest import KEY, Ingest, Opened
from tests.support.webhook_senders import base64_hmac, hex_hmac

PART = key_text(b"u" * RANDOM_BYTES, URL_PREFIX)
URL = ApiKeyRecord(key_digest(PART), 1, "p", "old")
FERNET_KEY = base64.urlsafe_b64encode(b"k" * 32).decode()
SECRET = "shared-with-the-sender"
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
NONE = WebhookRecord("p", "old", 1, "none")
WHSEC = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ENV = {"PENSTOCK_FERNET_KEYS": FERNET_KEY, "PENSTOCK_INGEST_URL": "https://in.example/"}


@pytest.fixture
def opened(opened: Opened) -> Opened:
    """Return a function that makes replicas that can decrypt secrets."""
    return partial(opened, env=ENV)


def sealed(secret: str, *, source: str = "old") -> str:
    return Fernet(FERNET_KEY).encrypt(bind(secret, webhook_place("p", source)).encode()).decode()


def settings(preset: str, *headers: str, secrets: tuple[str, ...] = (SECRET,), version: int = 1) -> WebhookRecord:
    return WebhookRecord("p", "old", version, preset, [sealed(one) for one in secrets], list(headers))


class Answer(MemoryExchange):
    """Exchange with one request."""

    @property
    def code(self) -> str:
        return str(self.answer["code"])


def post(
    ingest: Ingest, body: bytes, media_type: str = JSON, *, part: str = PART, query: str = "", method: str = "POST",
    **headers: str,
) -> Answer:  # fmt: skip
    given = {"content-type": media_type} | {name.replace("_", "-"): value for name, value in headers.items()}
    answer = Answer(body, given, target=f"/v1/hooks/{part}" + (f"?{query}" if query else ""), method=method)
    ingest.run(lambda: IngestApp(ingest.replica)(answer.request))
    return answer


def github(ingest: Ingest, body: bytes, media_type: str = JSON, **headers: str) -> Answer:
    signature = "sha256=" + hex_hmac(SECRET, body)
    return post(ingest, body, media_type, **({"x-hub-signature-256": signature, "x-github-event": "push"} | headers))


def test_verified_event_is_stored_as_it_came_with_the_headers_of_its_preset(opened: Opened):
    ingest = opened(URL, settings("github", "x-extra"))
    body = b'{ "ref" : "main" }'
    answer = github(ingest, body, x_github_delivery="d-1", x_extra="e", x_other="o", authorization="Bearer x")
    assert answer.status == 202
    assert answer.headers["location"].endswith(f"/receipts/{json.loads(answer.body)['id']}/")
    [(stored, meta, carried)] = ingest.stored.records
    assert (stored, carried) == (body, {"content-type": b"application/json"})
    assert (meta.source, meta.idempotency_key) == ("old", "d-1")
    assert meta.request_headers == {
        "x-github-event": "push",
        "x-github-delivery": "d-1",
        "x-hub-signature-256": "sha256=" + hex_hmac(SECRET, body),
        "x-extra": "e",
    }


def test_array_of_a_webhook_is_one_event(opened: Opened):
    ingest = opened(URL, NONE)
    assert post(ingest, b"[1, 2]").status == 202
    assert [body for body, _, _ in ingest.stored.records] == [b"[1, 2]"]


def test_forged_request_is_refused_unparsed_counted_and_leaves_no_sample(opened: Opened):
    ingest = opened(URL, settings("github"))
    answer = github(ingest, b"{not json", **{"x-hub-signature-256": "sha256=" + "0" * 64})
    assert (answer.status, answer.code) == (401, "signature-invalid")
    missing = post(ingest, b'{"canary": 1}')
    assert (missing.status, missing.code) == (401, "signature-missing")
    assert ingest.stored.records == []
    assert {(one.code, one.source, one.events, len(one.samples)) for one in ingest.reported()} == {
        ("signature-invalid", "old", 1, 0),
        ("signature-missing", "old", 1, 0),
    }


def test_stale_request_is_refused_with_its_own_code(opened: Opened):
    ingest = opened(URL, settings("stripe"))
    body, now_s = b'{"id": "evt_1", "created": 1700000000}', int(time.time())
    for signed_s, expected in ((now_s, 202), (now_s - 310, 401)):
        signature = f"t={signed_s},v1={hex_hmac(SECRET, b'%d.' % signed_s + body)}"
        answer = post(ingest, body, **{"stripe-signature": signature})
        assert answer.status == expected
    assert answer.code == "signature-stale"
    [(_, meta, _)] = ingest.stored.records
    assert (meta.idempotency_key, meta.event_time_us) == ("evt_1", 1_700_000_000_000_000)
    [report] = ingest.reported()
    assert isinstance(report, RejectionReport)
    assert report.code == "signature-stale"


def test_unknown_revoked_expired_and_malformed_urls_get_the_same_404(opened: Opened):
    other = key_text(b"o" * RANDOM_BYTES, URL_PREFIX)
    ingest = opened(
        NONE,
        ApiKeyRecord(key_digest(PART), 1, "p", "old", revoked=True),
        ApiKeyRecord(key_digest(other), 1, "p", "old", expires_us=1),
    )
    parts = [PART, other, key_text(b"n" * RANDOM_BYTES, URL_PREFIX), "", "psh_junk", "psh_\u00fc", KEY, "a/b"]
    answers = [post(ingest, b"{}", part=part) for part in parts]
    bodies = [json.loads(answer.body) for answer in answers]
    assert {answer.status for answer in answers} == {404}
    assert len({(body["code"], body["detail"]) for body in bodies}) == 1
    assert ingest.reported() == []


def test_url_is_no_key_and_a_key_is_no_url(opened: Opened):
    ingest = opened(URL, settings("github"))
    assert github(ingest, b"{}").status == 202  # the route of the URL is cached now
    assert ingest.post(b"{}", authorization=f"Bearer {PART}").status == 401
    assert ingest.post(b"{}").status == 202
    assert post(ingest, b"{}", part=KEY).status == 404


def test_url_without_settings_or_with_unreadable_secrets_accepts_nothing(opened: Opened):
    ingest = opened(URL)
    assert post(ingest, b"{}").status == 404
    of_another = WebhookRecord("p", "old", 1, "github", [sealed(SECRET, source="shop")])
    for version, record in enumerate((of_another, settings("github", secrets=()), settings("of-a-later-release")), 1):
        ingest.replica.table.apply(WebhookRecord("p", "old", version, record.preset, record.secrets))
        assert (github(ingest, b"{}").status, ingest.stored.records) == (503, [])


def test_both_secrets_are_valid_during_a_rotation(opened: Opened):
    ingest = opened(URL, settings("github", secrets=("the-newer-secret", SECRET)))
    assert github(ingest, b"{}").status == 202
    ingest.replica.table.apply(settings("github", secrets=("the-newer-secret",), version=2))
    assert github(ingest, b"{}").status == 401


def test_closed_pipe_is_reported_to_its_sender(opened: Opened):
    ingest = opened(URL, NONE, PipeRecord("p", 2, "t", "orders", "c1", "closed", [(1, 100)]))
    assert post(ingest, b"{}").status == 409


@pytest.mark.parametrize(
    ("media_type", "body", "stored"),
    [
        (FORM, b"a=1&b=%C3%BC", {"a": "1", "b": "\u00fc"}),
        (FORM, b"payload=%7B%22a%22%3A1%7D", {"a": 1}),
        ("text/xml; charset=utf-8", b"<a><b>1</b></a>", {"a": {"b": "1"}}),
        ("application/xml", b"<a/>", {"a": None}),
        (JSON + "; charset=utf-8", b'{"a":1}', {"a": 1}),
    ],
)
def test_forms_and_xml_are_stored_as_json(opened: Opened, media_type: str, body: bytes, stored: Any):
    ingest = opened(URL, NONE)
    assert post(ingest, body, media_type).status == 202
    assert ingest.bodies() == [stored]
    assert ingest.stored.records[0][2]["content-type"] == b"application/json"


@pytest.mark.parametrize(
    ("media_type", "body", "status", "code"),
    [
        (FORM, b"a", 400, "form-invalid"),
        (FORM, b"payload=not+json", 400, "json-invalid"),
        ("text/xml", b"<!DOCTYPE a><a/>", 400, "xml-invalid"),
        (JSON, b'{"a":1,"a":2}', 400, "json-duplicate-key"),
        ("text/csv", b"a,b", 415, "media-type"),
        ("", b"{}", 415, "media-type"),
        ("text/xml; charset=x-evil", b"<a/>", 400, "xml-invalid"),
        ("text/xml", b"<a><a/>" * 59 + b"</a>" * 59, 400, "json-too-deep"),  # arrays in objects: 118 levels
        (JSON, b'"%s"' % (b"x" * 300_000), 413, "event-too-large"),
    ],
)
def test_other_bodies_are_refused_and_counted(opened: Opened, media_type: str, body: bytes, status: int, code: str):
    ingest = opened(URL, NONE)
    answer = post(ingest, body, media_type)
    assert (answer.status, answer.code) == (status, code)
    assert [one.code for one in ingest.reported()] == [code]


def test_only_cloudevents_may_have_other_media_types(opened: Opened):
    ingest = opened(URL, settings("github"))
    answer = github(ingest, b"a,b", "text/csv", **{"ce-specversion": "1.0"})
    assert (answer.status, answer.code) == (415, "media-type")
    ingest.replica.table.apply(settings("cloudevents", version=2))
    ce = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "t"}
    assert post(ingest, b"a,b", "text/csv", authorization=f"Bearer {SECRET}", **ce).status == 202
    assert [body for body, _, _ in ingest.stored.records] == [b"a,b"]


def test_svix_headers_name_delivery_and_time(opened: Opened):
    ingest, now_s = opened(URL, settings("standard-webhooks", secrets=(WHSEC,))), int(time.time())
    signed = base64_hmac(base64.b64decode(WHSEC.removeprefix("whsec_")), b"msg_1.%d.{}" % now_s)
    headers = {"svix-id": "msg_1", "svix-timestamp": str(now_s), "svix-signature": f"v1,{signed}"}
    assert post(ingest, b"{}", **headers).status == 202
    [(_, meta, _)] = ingest.stored.records
    assert (meta.idempotency_key, meta.event_time_us) == ("msg_1", now_s * 1_000_000)


def test_gzip_body_is_verified_and_stored_as_its_content(opened: Opened):
    ingest, body = opened(URL, settings("github")), b'{ "a": 1 }'
    signature = {"x-hub-signature-256": "sha256=" + hex_hmac(SECRET, body), "content-encoding": "gzip"}
    assert post(ingest, gzip.compress(body), **signature).status == 202
    assert [stored for stored, _, _ in ingest.stored.records] == [body]
    assert post(ingest, gzip.compress(body)[:-1], **signature).code == "encoding-invalid"


def test_quota_of_the_tenant_counts_webhooks_and_events_together(opened: Opened):
    ingest = opened(URL, settings("github"), env=ENV | {"PENSTOCK_QUOTAS": "events_per_s=1"})
    ingest.replica.meters.clock = lambda: 100.0
    assert [github(ingest, b"{}").status, ingest.post(b"{}").status] == [202, 202]  # two at once, then one a second
    over = github(ingest, b"{}")
    assert (over.status, over.code) == (429, "quota-exceeded")
    assert int(over.headers["retry-after"]) >= 1
    assert len(ingest.stored.records) == 2
    assert ingest.reported() == []


def test_forged_requests_use_no_events_of_the_quota(opened: Opened):
    ingest = opened(URL, settings("github"), env=ENV | {"PENSTOCK_QUOTAS": "events_per_s=1"})
    ingest.replica.meters.clock = lambda: 100.0
    for _ in range(5):
        assert post(ingest, b"{}", **{"x-hub-signature-256": "sha256=" + "0" * 64}).status == 401
    assert github(ingest, b"{}").status == 202


def test_events_of_a_webhook_without_kafka_get_503_with_retry_after(opened: Opened, monkeypatch: pytest.MonkeyPatch):
    """A sender repeats what gets 503; nothing is acknowledged before Kafka has it with its headers."""
    ingest = opened(URL, settings("github"))

    def full(*_: Any, **__: Any) -> None:
        raise BufferError

    with monkeypatch.context() as patched:
        patched.setattr(ingest.stored, "produce", full)
        answer = github(ingest, b"{}")
    assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "unavailable", "2")
    assert github(ingest, b"{}").status == 202
    [(_, meta, _)] = ingest.stored.records
    assert meta.request_headers["x-github-event"] == "push"


def test_slack_gets_its_challenge_and_an_empty_answer_to_events(opened: Opened):
    ingest = opened(URL, settings("slack"))

    def slack(body: bytes, media_type: str) -> Answer:
        now = str(int(time.time()))
        signature = "v0=" + hex_hmac(SECRET, f"v0:{now}:".encode() + body)
        return post(ingest, body, media_type, **{"x-slack-signature": signature, "x-slack-request-timestamp": now})

    asked = slack(b'{"token": "t", "challenge": "3eZbrw1aB", "type": "url_verification"}', JSON)
    assert (asked.status, asked.body) == (200, b"3eZbrw1aB")
    assert ingest.stored.records == []
    command = slack(b"command=%2Fweather&text=94070", FORM)
    assert (command.status, command.body) == (200, b"")
    event = slack(b'{"type": "event_callback", "event_id": "Ev1", "event": {"type": "url_verification"}}', JSON)
    assert (event.status, event.body) == (200, b"")
    assert [meta.idempotency_key for _, meta, _ in ingest.stored.records] == ["", "Ev1"]
    forged = post(ingest, b'{"challenge": "x", "type": "url_verification"}')
    assert forged.status == 401


def test_twilio_signs_the_public_url_with_its_query_and_gets_twiml(opened: Opened):
    ingest = opened(URL, settings("twilio"))
    signed = f"https://in.example/v1/hooks/{PART}?a=bBodyhelloSmsSid7"
    signature = base64_hmac(SECRET.encode(), signed.encode(), "sha1")
    headers = {"x-twilio-signature": signature, "host": "10.0.0.1", "i-twilio-idempotency-token": "tok"}
    answer = post(ingest, b"SmsSid=7&Body=hello", FORM, query="a=b", **headers)
    assert (answer.status, answer.headers["content-type"], answer.body) == (200, "text/xml", b"<Response/>")
    assert ingest.bodies() == [{"SmsSid": "7", "Body": "hello"}]
    assert ingest.stored.records[0][1].idempotency_key == "tok"
    assert post(ingest, b"SmsSid=7&Body=hello", FORM, **headers).status == 401


def test_cloudevents_shake_hands_and_come_in_every_mode(opened: Opened):
    ingest = opened(URL, settings("cloudevents"))
    asked = post(ingest, b"", method="OPTIONS", **{"webhook-request-origin": "events.example"})
    assert (asked.status, asked.headers["webhook-allowed-origin"]) == (200, "events.example")
    bad = post(ingest, b"", method="OPTIONS", **{"webhook-request-origin": "a\r\nb"})
    assert bad.status == 405
    bearer = {"authorization": f"Bearer {SECRET}"}
    ce = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "t"}
    assert post(ingest, b"{}", **bearer, **ce).status == 202
    envelope = {"specversion": "1.0", "id": "2", "source": "/s", "type": "t", "data": {"a": 1}}
    assert post(ingest, json.dumps(envelope).encode(), "application/cloudevents+json", **bearer).status == 202
    batch = json.dumps([envelope, {}]).encode()
    answer = post(ingest, batch, "application/cloudevents-batch+json", **bearer)
    assert (answer.status, json.loads(answer.body)["accepted"]) == (207, 1)
    assert [meta.idempotency_key for _, meta, _ in ingest.stored.records] == ["/s 1", "/s 2", "/s 2"]
    ingest.stored.records.clear()
    for source, id_ in (("a b", "c"), ("a", "b c"), ("a", "x" * 255), ("a", "x" * 256)):
        assert post(ingest, b"{}", **bearer, **{**ce, "ce-source": source, "ce-id": id_}).status == 202
    keys = [meta.idempotency_key for _, meta, _ in ingest.stored.records]
    assert len(set(keys)) == 4, "two events have the same id, or none"
    assert all(0 < len(key) <= 255 for key in keys)
    assert post(ingest, b"{}", **ce).status == 401


def test_other_methods_are_refused(opened: Opened):
    ingest = opened(URL, settings("github"))
    for method in ("GET", "PUT", "OPTIONS"):
        answer = post(ingest, b"", method=method)
        assert (answer.status, answer.headers["allow"]) == (405, "POST")


def test_idempotency_key_is_kept_for_each_sender_and_checked(opened: Opened):
    ingest = opened(URL, NONE)
    assert post(ingest, b"{}", **{"idempotency-key": '"k-1"'}).status == 202
    assert ingest.post(b"{}", **{"idempotency-key": "k-2"}).status == 202
    assert ingest.post(b"[{}]", **{"idempotency-key": "k-3"}).status == 202  # of a request, not of its events
    assert [meta.idempotency_key for _, meta, _ in ingest.stored.records] == ["k-1", "k-2", ""]
    for bad in ("x" * 256, "a\x07b"):
        assert post(ingest, b"{}", **{"idempotency-key": bad}).code == "id-invalid"
        assert ingest.post(b"{}", **{"idempotency-key": bad}).status == 400


def test_header_that_kafka_and_destinations_could_not_carry_is_left_out(opened: Opened):
    ingest = opened(URL, WebhookRecord("p", "old", 1, "none", headers=["x-long", "x-control", "x-fine"]))
    post(ingest, b"{}", **{"x-long": "v" * 1_025, "x-control": "a\x00b", "x-fine": "v"})
    assert ingest.stored.records[0][1].request_headers == {"x-fine": "v"}


def test_url_is_503_while_the_table_is_read(opened: Opened):
    ingest = opened()
    ingest.replica._reader.at_end = False
    assert post(ingest, b"{}").status == 503
    records: list[Record] = [URL]
    ingest.replica.table.apply(records[0])
    assert post(ingest, b"{}").status == 503
