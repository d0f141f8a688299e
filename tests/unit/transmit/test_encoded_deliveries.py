"""Destinations with an encoding get Avro, signed as sent; a misfit is dead with its place, and blocks no other."""

import base64
import hmac
from pathlib import Path
from typing import Any

import pytest

from dataplane.ledger.deadletter import dead_letter_reason
from dataplane.plan.encoding import EventEncoder
from dataplane.schemas.types import SchemaType
from dataplane.spec import (
    AvroEncoding,
    ColumnsEncoding,
    LakeDestination,
    RequestTemplate,
    RetryPolicy,
    TopicDestination,
)
from dataplane.tables.records import DestinationRecord, RegisteredSchema, decode_record, encode_record
from dataplane.transmit.work import TransmitWork
from tests.support.memory_lane import MemoryLane, message
from tests.support.transmitting import KEY, NODE, SECRET, TOKEN, MemoryProducer, destination, opened, without_kafka

DOCUMENT = '{"type":"record","name":"Order","fields":[{"name":"id","type":"string"},{"name":"n","type":"long"}]}'
SCHEMA = RegisteredSchema(7, 3, SchemaType.AVRO, "ab" * 32, DOCUMENT)
AVRO = AvroEncoding("avro", "orders-value", 3)
CONFLUENT = AvroEncoding("confluent", "orders-value", 3)
FITS, MISFIT = b'{"id":"a","n":1}', b'{"id":"a","n":"one"}'


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    without_kafka(monkeypatch)


def http(schema: RegisteredSchema | None = SCHEMA, **to: Any) -> DestinationRecord:
    plain = destination(**to)
    return DestinationRecord("p", "crm", 1, "active", plain.to, [TOKEN], schema=schema)


def topic(var: Path, encoding: AvroEncoding) -> tuple[MemoryLane, TransmitWork, MemoryProducer]:
    return stored(var, TopicDestination(retry=RetryPolicy(local_tries=1), encoding=encoding))


def stored(
    var: Path, to: LakeDestination | TopicDestination, schema: RegisteredSchema | None = SCHEMA
) -> tuple[MemoryLane, TransmitWork, MemoryProducer]:
    lane = MemoryLane("transmit", var, KEY)
    lane.table.apply(decode_record(encode_record(DestinationRecord("p", "crm", 1, "active", to, [], schema=schema))))
    lane.work = TransmitWork(lane)
    producer = lane.work._writer._producer = MemoryProducer()
    return lane, lane.work, producer


def encoded(encoding: AvroEncoding, body: bytes) -> bytes:
    return EventEncoder(encoding, 7, "ab" * 32, DOCUMENT)(body)


@pytest.mark.parametrize(
    ("encoding", "content_type"), [(AVRO, "application/avro"), (CONFLUENT, "application/octet-stream")]
)
def test_http_request_is_encoded_names_its_schema_and_is_signed_as_sent(
    tmp_path: Path, encoding: AvroEncoding, content_type: str
):
    lane, work, sender = opened(tmp_path, http(encoding=encoding))
    lane.take(message(5, FITS))
    work.poll()
    ((_, lines, body, _),) = sender.requests
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    assert body == encoded(encoding, FITS)
    assert [line for line in lines if line.lower().startswith("content-type")] == [f"Content-Type: {content_type}"]
    assert (headers["penstock-schema"], headers["penstock-schema-fingerprint"]) == ("orders-value@3", "ab" * 32)
    signed = b".".join((headers["webhook-id"].encode(), headers["webhook-timestamp"].encode(), body))
    secret = base64.b64decode(SECRET.removeprefix("whsec_"))
    signature = base64.b64encode(hmac.digest(secret, signed, "sha256")).decode()
    assert headers["webhook-signature"] == f"v1,{signature}"
    work.close()


def test_template_is_rendered_before_its_body_is_encoded(tmp_path: Path):
    template = RequestTemplate(path="/c/${body.id}", body='{"id": body.id, "n": body.n}')
    lane, work, sender = opened(tmp_path, http(encoding=AVRO, template=template))
    lane.take(message(5, b'{"id":"a","n":1,"more":true}'))
    work.poll()
    ((url, _, body, _),) = sender.requests
    assert (url, body) == ("http://crm.example/c/a", encoded(AVRO, FITS))
    work.close()


def test_http_misfit_is_dead_unsent_with_place_and_blocks_no_other(tmp_path: Path):
    lane, work, sender = opened(tmp_path, http(encoding=AVRO))
    lane.take(message(5, MISFIT), message(6, FITS))
    work.poll()
    assert [body for _, _, body, _ in sender.requests] == [encoded(AVRO, FITS)]
    sender.answer(204)
    work.poll()
    assert_misfit_is_dead(lane)
    work.close()


def test_topic_record_is_framed_and_keeps_key_and_headers(tmp_path: Path):
    lane, work, producer = topic(tmp_path, CONFLUENT)
    lane.take(message(5, FITS, key=b"crm\0shop-7", more=[("ce_type", b"order")]))
    work.poll()
    work.poll()
    (record,) = producer.sent
    assert (record.key, record.value) == (b"shop-7", b"\x00\x00\x00\x00\x07" + encoded(AVRO, FITS))
    assert record.headers == [
        ("penstock-id", b"id-0-5"),
        ("penstock-position", b"0-0-5"),
        ("ce_type", b"order"),
        ("content-type", b"application/octet-stream"),
        ("penstock-schema", b"orders-value@3"),
        ("penstock-schema-fingerprint", b"ab" * 32),
    ]
    work.close()


def test_topic_misfit_is_dead_with_place_and_blocks_no_other(tmp_path: Path):
    lane, work, producer = topic(tmp_path, CONFLUENT)
    lane.take(message(5, MISFIT), message(6, FITS))
    work.poll()
    work.poll()
    producer.report()
    work.poll()
    work.poll()
    assert [record.value for record in producer.sent] == [encoded(CONFLUENT, FITS)]
    assert_misfit_is_dead(lane)
    work.close()


def assert_misfit_is_dead(lane: MemoryLane) -> None:
    lane.store()
    assert lane.filed() == {(NODE, "dead", "schema"): 1, (NODE, "delivered", ""): 1}
    (letter,) = lane.producer.of(lane.cell.topics["dead"].name)
    death = dead_letter_reason(letter["headers"])
    assert (death.node, death.cause) == (NODE, "schema")
    assert "orders-value@3: /n: needs long, got a text" in death.detail
    assert letter["value"] == MISFIT, "unchanged"
    assert lane.unsettled() == 0


def test_nothing_is_sent_as_json_while_the_record_lacks_the_schema(tmp_path: Path):
    lane, work, sender = opened(tmp_path, http(schema=None, encoding=AVRO))
    lane.take(message(5, FITS))
    work.poll()
    assert not sender.requests
    work.close()


@pytest.mark.parametrize(("schema", "sent"), [(SCHEMA, [MISFIT]), (None, [])])
def test_message_for_typed_columns_is_json_on_the_lake_topic_and_waits_for_the_schema(
    tmp_path: Path, schema: RegisteredSchema | None, sent: list[bytes]
):
    to = LakeDestination(encoding=ColumnsEncoding("columns", "orders-value", 3))
    lane, work, producer = stored(tmp_path, to, schema)
    lane.take(message(5, MISFIT))
    work.poll()
    work.poll()
    assert [record.value for record in producer.sent] == sent
    work.close()


def test_records_without_an_encoding_do_not_name_it_because_earlier_releases_refuse_the_field():
    assert b"encoding" not in encode_record(destination())
    record = http(encoding=CONFLUENT)
    assert decode_record(encode_record(record)) == record
