"""Runtime of the Python client: retries, limits and results of the sender, signatures, TimeUuids, and values."""

import base64
import json
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from dataplane.schemas.avro import AvroType, LogicalType
from dataplane.schemas.bad_value import BadValueError
from dataplane.schemas.from_values import ValueReader
from dataplane.schemas.standard import time_uuid_clock_us
from dataplane.transmit.http.signature import sign, signer
from loadgen.scripted import Receiver, status
from typed_clients.runtime.python import codecs, time_uuid
from typed_clients.runtime.python.codecs import FieldCodec, InvalidValueError
from typed_clients.runtime.python.sender import (
    BatchSender,
    EventNotStoredError,
    EventRefusedError,
    QueueFullError,
    SenderSettings,
    TypedEvent,
)
from typed_clients.runtime.python.time_uuid import TimeUuid
from typed_clients.runtime.python.webhook import SignatureInvalidError, WebhookVerifier

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + base64.b64encode(b"another secret of 24 byt").decode()
EVENTS = "/v1/events"
NOW_S = 1_795_564_800
FAST = {"first_backoff_s": 0.01, "max_backoff_s": 0.02, "max_wait_s": 0.02}


class Note(TypedEvent):
    """Event with one field."""

    EVENT_TYPE: ClassVar[str] = "note"
    ID_ATTRIBUTE: ClassVar[str] = ""

    def __init__(self, text: str) -> None:
        self.text = text

    @classmethod
    def fields(cls) -> tuple[FieldCodec, ...]:
        return (FieldCodec("text", "text", codecs.text()),)


@pytest.fixture
def ingest() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def sender(ingest: Receiver, **settings: Any) -> BatchSender:
    return BatchSender(ingest.url(""), "key", source="test", settings=SenderSettings(**(FAST | settings)))


class Script:
    """Answers requests in turn: a status with results of events, or one for all of them. The last answer stays."""

    def __init__(self, *answers: tuple[int, Any, str]) -> None:
        self._answers = list(answers)

    async def __call__(self, writer: Any, received: Any) -> bool:
        code, body, headers = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return await status(code, headers, json.dumps(body).encode())(writer, received)


def items(*statuses: int) -> dict[str, Any]:
    return {"items": [{"status": one, "id": f"m{n}", "position": f"p{n}"} for n, one in enumerate(statuses)]}


def ids(ingest: Receiver) -> list[list[str]]:
    return [[one["id"] for one in json.loads(request.body)] for request in ingest.got[EVENTS]]


def test_only_events_without_a_final_result_are_repeated_under_their_ids(ingest: Receiver):
    refusal = {"status": 422, "code": "schema", "detail": "/text: needs text", "pointer": "/text"}
    first = {"items": [{"status": 202, "id": "m", "position": "p"}, refusal, {"status": 429}]}
    ingest.answers[EVENTS] = Script((207, first, ""), (202, items(202), ""))
    with sender(ingest) as sending:
        accepted, refused, repeated = (sending.send(Note(text)) for text in "abc")
        assert accepted.result(20).message_id == "m"
        assert repeated.result(20).position == "p0"
        with pytest.raises(EventRefusedError) as caught:
            refused.result(20)
    assert (caught.value.status, caught.value.code, caught.value.pointer) == (422, "schema", "/text")
    sent = ids(ingest)
    assert sent == [[*sent[0][:2], repeated.result().event_id], [repeated.result().event_id]]


@pytest.mark.parametrize("answer", [
    (500, {}, ""), (503, {"detail": "later"}, ""), (429, {}, ""), (408, {}, ""), (202, "not an object", ""),
    (202, items(202, 202), ""),
])  # fmt: skip
def test_event_without_a_final_answer_is_sent_up_to_the_number_of_attempts(ingest: Receiver, answer: Any):
    if answer[0] == 202:  # of a proxy that answers for ingest
        ingest.answers[EVENTS] = status(200, body=b"<html>")
    else:
        ingest.answers[EVENTS] = Script(answer)
    with sender(ingest, attempts=3) as sending, pytest.raises(EventNotStoredError):
        sending.send(Note("a"), event_id="e1").result(20)
    assert ids(ingest) == [["e1"]] * 3


@pytest.mark.parametrize("code", [400, 401, 403, 404, 413, 415])
def test_refused_request_refuses_its_events_and_is_not_repeated(ingest: Receiver, code: int):
    ingest.answers[EVENTS] = Script((code, {"status": code, "code": "key-invalid", "detail": "no"}, ""))
    with sender(ingest) as sending:
        results = [sending.send(Note(text)) for text in "ab"]
        for result in results:
            with pytest.raises(EventRefusedError, match=f"{code} key-invalid: no"):
                result.result(20)
    assert len(ingest.got[EVENTS]) == 1


def test_retry_after_is_honoured_though_the_backoff_is_shorter(ingest: Receiver):
    ingest.answers[EVENTS] = Script((429, {}, "retry-after: 1\r\n"), (202, items(202), ""))
    with sender(ingest) as sending:
        sending.send(Note("a")).result(20)
    first, second = ingest.got[EVENTS]
    assert second.at_ns - first.at_ns >= 1_000_000_000


def test_full_queue_refuses_events_and_takes_them_again_after_results(ingest: Receiver):
    ingest.answers[EVENTS] = Script((503, {}, "retry-after: 1\r\n"), (202, items(202, 202), ""))
    with sender(ingest, max_queue_events=2) as sending:
        results = [sending.send(Note(text)) for text in "ab"]
        with pytest.raises(QueueFullError, match="2 events wait"):
            sending.send(Note("c"))
        ingest.answers[EVENTS] = Script((202, items(202, 202), ""))
        assert [bool(one.result(20)) for one in results] == [True, True]
        assert sending.flush(20)
        ingest.answers[EVENTS] = Script((202, items(202), ""))
        assert sending.send(Note("c")).result(20)
    with pytest.raises(QueueFullError, match="closed"):
        sending.send(Note("d"))


def test_batches_are_limited_by_events_and_by_bytes_and_keep_the_order(ingest: Receiver):
    class Counting(Script):
        async def __call__(self, writer: Any, received: Any) -> bool:
            count = len(json.loads(received.body))
            return await status(202, body=json.dumps(items(*[202] * count)).encode())(writer, received)

    ingest.answers[EVENTS] = Counting((202, {}, ""))
    with sender(ingest, max_batch_events=3, max_batch_bytes=2_000, max_wait_s=5) as sending:
        wanted = [f"e{n}" for n in range(10)]
        for one in wanted:
            sending.send(Note("x" * (900 if one == "e9" else 1)), event_id=one)
        assert sending.flush(20)
    sent = ids(ingest)
    assert [one for batch in sent for one in batch] == wanted
    assert max(map(len, sent)) == 3


def test_closing_ends_waits_and_reports_events_without_a_result(ingest: Receiver):
    ingest.answers[EVENTS] = Script((503, {}, "retry-after: 200\r\n"))
    sending = sender(ingest)
    result = sending.send(Note("a"))
    sending.close(timeout_s=0.5)
    with pytest.raises(EventNotStoredError, match="503"):
        result.result(20)


def test_invalid_value_is_refused_before_it_is_queued(ingest: Receiver):
    with sender(ingest) as sending, pytest.raises(InvalidValueError, match="/text: needs a text"):
        sending.send(Note(1))  # type: ignore[arg-type]
    assert not ingest.got[EVENTS]


# -- signatures -----------------------------------------------------------------------------------------------------


def signed(secret: str, body: bytes = b'{"a":1}', at_s: int = NOW_S) -> dict[str, str]:
    signature = sign([signer(OTHER), signer(secret)], "msg_1", at_s, body)
    attributes = {"ce-id": "e1", "ce-type": "note"}
    return {"Webhook-Id": "msg_1", "webhook-timestamp": str(at_s), "webhook-signature": signature, **attributes}


def test_signatures_of_transmit_verify_with_both_algorithms_and_during_a_rotation():
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    private = "whsk_" + base64.b64encode(key.private_bytes_raw()).decode()
    public = "whpk_" + base64.b64encode(key.public_key().public_bytes_raw()).decode()
    for secret, verifier in ((SECRET, SECRET), (private, public)):
        delivery = WebhookVerifier(verifier).verify(signed(secret), b'{"a":1}', now_s=NOW_S + 299)
        assert (delivery.id, delivery.event_id, delivery.event_type) == ("msg_1", "e1", "note")
    assert WebhookVerifier("whsec_AAAA", OTHER).verify(signed(SECRET), b'{"a":1}', now_s=NOW_S)


@pytest.mark.parametrize(
    ("changes", "body", "now_s"),
    [
        ({}, b'{"a":2}', NOW_S),
        ({"Webhook-Id": "msg_2"}, b'{"a":1}', NOW_S),
        ({"webhook-timestamp": str(NOW_S + 1)}, b'{"a":1}', NOW_S),
        ({"webhook-timestamp": "x"}, b'{"a":1}', NOW_S),
        ({"webhook-signature": "v1,"}, b'{"a":1}', NOW_S),
        ({"webhook-signature": "v1,\u00e9"}, b'{"a":1}', NOW_S),
        ({"webhook-signature": ""}, b'{"a":1}', NOW_S),
        ({}, b'{"a":1}', NOW_S + 301),
        ({}, b'{"a":1}', NOW_S - 301),
    ],
)
def test_changed_or_old_request_is_refused(changes: dict[str, str], body: bytes, now_s: int):
    with pytest.raises(SignatureInvalidError):
        WebhookVerifier(SECRET).verify(signed(SECRET) | changes, body, now_s=now_s)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_*", "MfKQ9r8GKYqr", "whpk_AAAA", "whsk_MfKQ9r8GKYqr"])
def test_malformed_secret_is_refused(secret: str):
    with pytest.raises(ValueError, match="needs"):
        WebhookVerifier(secret)


# -- TimeUuids and values -------------------------------------------------------------------------------------------


def test_time_uuids_ascend_and_have_the_clock_that_penstock_reads():
    made = [TimeUuid.now() for _ in range(5_000)]
    assert made == sorted(made)
    assert [str(one) for one in made] == sorted(str(one) for one in made)
    assert len(set(made)) == len(made)
    assert abs(made[0].time - datetime.now(UTC)).total_seconds() < 60
    assert made[0].clock_us == time_uuid_clock_us(made[0].uuid.bytes)
    version_1 = uuid.uuid1()
    assert TimeUuid(version_1).clock_us == time_uuid_clock_us(version_1.bytes)


def test_time_uuids_ascend_while_the_clock_is_frozen_or_steps_back(monkeypatch: pytest.MonkeyPatch):
    clock = iter([NOW_S * 10**9] * 50 + [NOW_S * 10**9 - 10**9] * 50)
    monkeypatch.setattr(time_uuid, "time", SimpleNamespace(time_ns=lambda: next(clock)))
    made = [str(TimeUuid.now()) for _ in range(100)]
    assert made == sorted(made)


@pytest.mark.parametrize("text", [
    "", "x", "6ba7b810-9dad-41d1-80b4-00c04fd430c8", "00000000-0000-7000-8000-000000000000",
    "{018f0000-0000-7000-8000-000000000000}", "6ba7b810-9dad-11d1-00b4-00c04fd430c8",
])  # fmt: skip
def test_other_texts_are_not_time_uuids(text: str):
    with pytest.raises(ValueError, match=r"needs a UUID|badly formed"):
        TimeUuid(text)


def agrees(codec: codecs.Codec[Any], node: AvroType, value: Any) -> None:
    """Check that the client refuses a value, or that ingest accepts its JSON and the client reads it back."""
    try:
        sent = codec.encode(value)
    except InvalidValueError:
        return
    ValueReader(None).read(node, json.loads(json.dumps(sent), parse_float=Decimal))
    assert codec.decode(codecs.parse_json(json.dumps(sent))) == value


@given(st.decimals(allow_nan=False, allow_infinity=False) | st.integers().map(Decimal), st.integers(0, 9))
def test_ingest_accepts_every_decimal_that_the_client_accepts_and_no_other(value: Decimal, scale: int):
    node = AvroType("bytes", logical=LogicalType("decimal", 9, scale))
    agrees(codecs.decimal(9, scale), node, value)
    try:
        ValueReader(None).read(node, value)
    except BadValueError:
        with pytest.raises(InvalidValueError):
            codecs.decimal(9, scale).encode(value)


@given(st.datetimes(timezones=st.just(UTC)), st.sampled_from([("millis", 3), ("micros", 6), ("nanos", 9)]))
def test_ingest_accepts_every_time_that_the_client_accepts(value: datetime, unit: tuple[str, int]):
    name, digits = unit
    agrees(codecs.timestamp(digits), AvroType("long", logical=LogicalType(f"timestamp-{name}")), value)
    local = LogicalType(f"local-timestamp-{name}")
    agrees(codecs.local_timestamp(digits), AvroType("long", logical=local), value.replace(tzinfo=None))


@pytest.mark.parametrize(("year", "fits"), [(1677, False), (1678, True), (2261, True), (2262, False), (9999, False)])
def test_nanoseconds_need_a_year_that_64_bits_hold(year: int, fits: bool):
    value = datetime(year, 6, 1, tzinfo=UTC)
    node = AvroType("long", logical=LogicalType("timestamp-nanos"))
    assert codecs.timestamp(6).encode(value) == f"{year}-06-01T00:00:00Z"
    if fits:
        agrees(codecs.timestamp(9), node, value)
        assert codecs.timestamp(9).encode(value)
        return
    with pytest.raises(InvalidValueError, match="1678 to 2261"):
        codecs.timestamp(9).encode(value)


@given(st.dates(), st.times(), st.binary(), st.text(), st.floats(allow_nan=False), st.integers())
def test_ingest_accepts_every_value_that_the_client_accepts(
    day: date, clock: time, octets: bytes, text: str, number: float, whole: int
):
    agrees(codecs.day(), AvroType("int", logical=LogicalType("date")), day)
    agrees(codecs.time_of_day(6), AvroType("long", logical=LogicalType("time-micros")), clock)
    agrees(codecs.time_of_day(3), AvroType("int", logical=LogicalType("time-millis")), clock)
    agrees(codecs.octets(), AvroType("bytes"), octets)
    agrees(codecs.text(), AvroType("string"), text)
    agrees(codecs.number(), AvroType("double"), number)
    agrees(codecs.integer(-(2**31), 2**31 - 1), AvroType("int"), whole)


def test_numbers_of_times_that_other_senders_use_are_read():
    assert codecs.timestamp(3).decode(1_500) == datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)
    assert codecs.day().decode(1) == date(1970, 1, 2)
    assert codecs.time_of_day(3).decode(1_500) == time(0, 0, 1, 500_000)
    assert codecs.decimal(9, 2).decode(Decimal("1.50")) == Decimal("1.50")


def test_union_names_its_branch_only_where_an_earlier_one_would_take_the_value():
    union = codecs.union(("string", codecs.text()), ("bytes", codecs.octets()), ("long", codecs.integer(0, 9)))
    assert [union.encode(one) for one in ("a", b"a", 3)] == ["a", {"bytes": "a"}, 3]
    assert [union.decode(one) for one in ("a", {"bytes": "a"}, 3)] == ["a", b"a", 3]
    with pytest.raises(InvalidValueError, match="needs a value of"):
        union.encode(10)
