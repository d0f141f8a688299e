"""A destination that sends original bodies gets the form or XML itself, signed as sent, in every attempt."""

import base64
import hmac
from pathlib import Path

import pytest

from dataplane.ledger.meta import OriginalBody, read_meta
from dataplane.spec import RetryPolicy
from tests.support.memory_lane import message
from tests.support.transmitting import SECRET, destination, opened, without_kafka

FORM = OriginalBody("application/x-www-form-urlencoded; charset=utf-8", b"Body=hello+there&SmsSid=7")
BODY = b'{"Body":"hello there","SmsSid":"7"}'


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    without_kafka(monkeypatch)


def fields_of(lines: list[str]) -> dict[str, str]:
    return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}


def test_original_is_sent_with_its_content_type_and_signed_as_sent(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination(original_body=True, forward_headers=["X-Twilio-Signature"]))
    lane.take(message(5, BODY, original=FORM, request_headers={"x-twilio-signature": "c2ln"}))
    work.poll()
    ((_, lines, body, _),) = sender.requests
    headers = fields_of(lines)
    assert body == FORM.content
    assert [line for line in lines if line.lower().startswith("content-type")] == [f"Content-Type: {FORM.content_type}"]
    assert headers["x-twilio-signature"] == "c2ln"
    signed = b".".join((headers["webhook-id"].encode(), headers["webhook-timestamp"].encode(), body))
    digest = hmac.digest(base64.b64decode(SECRET.removeprefix("whsec_")), signed, "sha256")
    assert headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()
    work.close()


def test_event_without_an_original_is_sent_as_it_is(tmp_path: Path):
    """JSON is the original itself; and so is a form that was accepted before a destination wanted it."""
    lane, work, sender = opened(tmp_path, destination(original_body=True))
    lane.take(message(5, BODY))
    work.poll()
    ((_, lines, body, _),) = sender.requests
    assert (body, fields_of(lines)["content-type"]) == (BODY, "application/json")
    work.close()


def test_destination_that_wants_it_no_more_gets_the_json(tmp_path: Path):
    lane, work, sender = opened(tmp_path, destination())
    lane.take(message(5, BODY, original=FORM))
    work.poll()
    ((_, lines, body, _),) = sender.requests
    assert (body, fields_of(lines)["content-type"]) == (BODY, "application/json")
    work.close()


@pytest.mark.parametrize(("status", "topic"), [(503, "retry-in"), (400, "dead")])
def test_retry_and_dead_letter_keep_body_and_original(tmp_path: Path, status: int, topic: str):
    lane, work, sender = opened(tmp_path, destination(original_body=True, retry=RetryPolicy(local_tries=1)))
    lane.take(message(5, BODY, original=FORM))
    work.poll()
    sender.answer_all_of("crm", status)
    work.poll()
    (record,) = [
        one for name in lane.cell.topics if name == topic for one in lane.producer.of(lane.cell.topics[name].name)
    ]
    assert (record["value"], read_meta(record["headers"]).original) == (BODY, FORM)
    work.close()
