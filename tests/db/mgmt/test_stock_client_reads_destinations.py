"""Confluent's own deserializer, unmodified, reads what a topic destination with an encoding produces."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from controlplane.provisioner.records import desired_records
from dataplane.tables.records import decode_record, encode_record
from dataplane.transmit.work import TransmitWork
from mgmt.models import Pipe, Tenant, User
from mgmt.services import create_pipe
from tests.db.cast import MakeSpec
from tests.db.console.truth import go_live
from tests.db.mgmt.registry_schemas import record
from tests.db.mgmt.test_stock_registry_clients import avro, client_at
from tests.support.memory_lane import MemoryLane, message
from tests.support.transmitting import KEY, MemoryProducer, without_kafka

pytestmark = pytest.mark.django_db(transaction=True)
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}
FIRST = record(id="string", total={"type": MONEY}, at={"type": {"type": "long", "logicalType": "timestamp-micros"}})
SECOND = FIRST | {"fields": [*FIRST["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
BODY = b'{"id":"ord-1","total":"12345678.90","at":"2026-11-26T12:00:00.000001Z"}'
EVENT = {
    "id": "ord-1",
    "total": Decimal("12345678.90"),
    "at": datetime(2026, 11, 26, 12, 0, 0, 1, tzinfo=UTC),
}


def register(live_server: LiveServer, *schemas: dict[str, Any]) -> None:
    with client_at(live_server) as registry:
        registry.register_schema("others", avro(record("com.shop.Other", id="int")))  # so that no id is a version
        for schema in schemas:
            registry.register_schema("orders", avro(schema))


def produced(pipe: Pipe, var: Path, body: bytes) -> bytes:
    """Return the value that a lane writes to the topic of the pipe's destination, by its published control record."""
    (published,) = desired_records([f"destination/{pipe.id}/feed"]).records
    lane = MemoryLane("transmit", var, KEY)
    lane.table.apply(decode_record(encode_record(published)))
    lane.work = TransmitWork(lane)
    producer = lane.work._writer._producer = MemoryProducer()
    lane.take(message(5, body, pipe=pipe.id, destination="feed"))
    lane.work.poll()
    lane.work.poll()
    (one,) = producer.sent
    lane.work.close()
    return one.value


@pytest.mark.parametrize("version", [1, 2])
def test_stock_deserializer_reads_the_records_of_a_topic_destination(
    live_server: LiveServer,
    tenant: Tenant,
    alice: User,
    a_spec: MakeSpec,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
    version: int,
):
    without_kafka(monkeypatch)
    settings.PENSTOCK_FERNET_KEYS = [KEY]
    register(live_server, FIRST, SECOND)
    feed = {"type": "topic", "encoding": {"format": "confluent", "subject": "orders", "version": version}}
    spec = a_spec() | {"destinations": {"feed": feed}}
    pipe = create_pipe(tenant=tenant, name="orders", spec=spec, author=alice)
    go_live(pipe)
    value = produced(pipe, tmp_path, BODY)
    with client_at(live_server) as reader:
        found = AvroDeserializer(reader)(value, SerializationContext("orders", MessageField.VALUE))
    assert found == EVENT | ({"note": None} if version == 2 else {})
