"""Ingest keeps the body of a form or XML next to its JSON, if a destination of the event's revision sends it."""

import json
from functools import partial
from typing import Any

import pytest

from dataplane.ingest.record_size import reject_large_pair
from dataplane.ledger.meta import OriginalBody
from dataplane.record_limits import BODY_BYTES
from dataplane.spec import parse_pipe_spec
from dataplane.spec.keys import key_digest
from dataplane.tables.records import ApiKeyRecord, PipeRecord, PlanRecord, Record, WebhookRecord
from tests.support.typed_ingest import DOCUMENT, Ingest, Opened
from tests.unit.ingest.test_webhooks import ENV, FORM, PART, post

URL = ApiKeyRecord(key_digest(PART), 1, "p", "old")
NONE = WebhookRecord("p", "old", 1, "none")
CRM = {"type": "http", "url": "http://crm.example/"}
XML = b'<?xml version="1.0" encoding="iso-8859-1"?><order id="7"><item>K\xe4se</item></order>'


@pytest.fixture
def opened(opened: Opened) -> Opened:
    return partial(opened, env=ENV)


def live(number: int, **to: Any) -> tuple[Record, ...]:
    """Return a revision whose destination has these fields, and the pipe with only this revision live."""
    spec = parse_pipe_spec(DOCUMENT | {"destinations": {"crm": CRM | to}})
    return PlanRecord("p", number, spec), PipeRecord("p", number, "t", "orders", "c1", "active", [(number, 100)])


def kept(ingest: Ingest) -> list[OriginalBody | None]:
    return [meta.original for _, meta, _ in ingest.stored.records]


@pytest.mark.parametrize(
    ("media_type", "body", "value"),
    [
        (f"{FORM}; charset=utf-8", b"b=2&a=%C3%BC&b=3", {"b": ["2", "3"], "a": "\u00fc"}),
        (FORM, b"payload=%7B%22a%22%3A1%7D", {"a": 1}),
        ("text/xml", XML, {"order": {"@id": "7", "item": "K\u00e4se"}}),
    ],
)
def test_converted_body_is_kept_with_its_content_type(opened: Opened, media_type: str, body: bytes, value: Any):
    ingest = opened(URL, NONE, *live(2, original_body=True))
    assert post(ingest, body, media_type).status == 202
    assert ingest.bodies() == [value]
    assert kept(ingest) == [OriginalBody(media_type, body)]


def test_json_is_its_own_original(opened: Opened):
    ingest = opened(URL, NONE, *live(2, original_body=True))
    assert post(ingest, b'{ "a" : 1.0e0 }').status == 202
    assert [body for body, _, _ in ingest.stored.records] == [b'{ "a" : 1.0e0 }']
    assert kept(ingest) == [None]


def test_nothing_is_kept_unless_a_destination_of_the_revision_sends_it(opened: Opened):
    ingest = opened(URL, NONE, *live(2))
    assert post(ingest, b"a=1", FORM).status == 202
    for record in live(3, original_body=True):
        ingest.replica.table.apply(record)
    assert post(ingest, b"a=1", FORM).status == 202
    assert kept(ingest) == [None, OriginalBody(FORM, b"a=1")]


def test_content_type_that_no_header_may_have_is_kept_without_parameters(opened: Opened):
    ingest = opened(URL, NONE, *live(2, original_body=True))
    assert post(ingest, b"a=1", f"{FORM}; x={'y' * 2_000}").status == 202
    assert kept(ingest) == [OriginalBody(FORM, b"a=1")]


def test_original_counts_as_body_and_not_as_envelope(opened: Opened):
    """The envelope has at most 64 kB, and a body may have more."""
    ingest = opened(URL, NONE, *live(2, original_body=True))
    body = b"a=" + b"x" * 100_000
    assert post(ingest, body, FORM).status == 202
    assert kept(ingest) == [OriginalBody(FORM, body)]


def test_body_and_original_that_do_not_fit_a_record_together_are_refused(opened: Opened):
    ingest = opened(URL, NONE, *live(2, original_body=True), env=ENV | {"PENSTOCK_MAX_EVENT_BYTES": str(BODY_BYTES)})
    half = BODY_BYTES // 2
    answer = post(ingest, b"a=" + b"x" * half, FORM)
    assert (answer.status, answer.code) == (413, "event-too-large")
    assert str(BODY_BYTES) in json.loads(answer.body)["detail"]
    assert post(ingest, b"a=" + b"x" * (half - 10), FORM).status == 202
    reject_large_pair(b"x" * half, OriginalBody(FORM, b"x" * (BODY_BYTES - half)))
