"""Confluent's own client, unmodified, against the wire API: register, look up, serialize, deserialize, refusals."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pytest_django.live_server_helper import LiveServer

from mgmt.models import SubjectVersion, Tenant, User
from tests.db.mgmt.registry_schemas import BREAKING, V1, V2, record

pytestmark = pytest.mark.django_db(transaction=True)
PASSWORD = "alice's long password"
ORDERS = "orders-value"
VALUE = SerializationContext("orders", MessageField.VALUE)
EVENT = {"id": "ord-1", "total": 12.5}


@pytest.fixture
def registry(live_server: LiveServer, alice: User, tenant: Tenant) -> Iterator[SchemaRegistryClient]:
    with client_at(live_server) as client:
        yield client


def client_at(live_server: LiveServer) -> SchemaRegistryClient:
    """Return a client as its documentation configures it; only retries are off, so that a failure shows."""
    return SchemaRegistryClient(
        {
            "url": f"{live_server.url}/registry",
            "basic.auth.user.info": f"alice:{PASSWORD}",
            "max.retries": 0,
        }
    )


def avro(schema: dict[str, Any], **more: Any) -> Schema:
    return Schema(json.dumps(schema), "AVRO", **more)


def refused(call: Any, *given: Any, **named: Any) -> tuple[int, int, str]:
    with pytest.raises(SchemaRegistryError) as caught:
        call(*given, **named)
    return caught.value.http_status_code, caught.value.error_code, str(caught.value)


def test_avro_serializer_registers_and_deserializer_reads_by_the_id(registry: SchemaRegistryClient, live_server: Any):
    payload = AvroSerializer(registry, json.dumps(V1))(EVENT, VALUE)
    assert payload is not None
    assert payload[:1] == b"\x00"
    number = int.from_bytes(payload[1:5])
    assert registry.get_latest_version(ORDERS).schema_id == number
    with client_at(live_server) as reader:  # with an empty cache, as another process has it
        assert AvroDeserializer(reader)(payload, VALUE) == EVENT
        evolved = AvroDeserializer(reader, json.dumps(V2))(payload, VALUE)
    assert evolved == EVENT | {"note": None}


def test_serializer_that_may_not_register_uses_the_latest_version(registry: SchemaRegistryClient):
    registry.register_schema(ORDERS, avro(V1))
    registry.register_schema(ORDERS, avro(V2))
    config = {"auto.register.schemas": False, "use.latest.version": True}
    payload = AvroSerializer(registry, json.dumps(V1), conf=config)(EVENT, VALUE)
    assert payload is not None
    assert int.from_bytes(payload[1:5]) == registry.get_latest_version(ORDERS).schema_id
    lookup = AvroSerializer(registry, json.dumps(V1), conf={"auto.register.schemas": False})(EVENT, VALUE)
    assert lookup is not None
    assert int.from_bytes(lookup[1:5]) == registry.get_version(ORDERS, 1).schema_id


def test_json_serializer_and_deserializer_agree(registry: SchemaRegistryClient):
    schema = {
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "string"}, "total": {"type": "number"}},
        "additionalProperties": False,
    }
    payload = JSONSerializer(json.dumps(schema), registry)(EVENT, VALUE)
    assert JSONDeserializer(None, schema_registry_client=registry)(payload, VALUE) == EVENT
    assert registry.get_latest_version(ORDERS).schema.schema_type == "JSON"


def test_incompatible_change_is_refused_with_every_place(registry: SchemaRegistryClient):
    registry.register_schema(ORDERS, avro(V1))
    assert registry.test_compatibility(ORDERS, avro(V2))
    assert not registry.test_compatibility(ORDERS, avro(BREAKING), verbose=True)
    assert not registry.test_compatibility_all_versions(ORDERS, avro(BREAKING))
    status, code, text = refused(registry.register_schema, ORDERS, avro(BREAKING))
    assert (status, code) == (409, 409)
    assert "/fields/0/type" in text
    assert "/fields/2" in text
    status, code, _ = refused(AvroSerializer(registry, json.dumps(BREAKING)), {"id": 1, "total": 1, "tax": 1}, VALUE)
    assert (status, code) == (409, 409)
    assert registry.get_versions(ORDERS) == [1]


def test_references_are_followed_by_serializer_and_deserializer(registry: SchemaRegistryClient, live_server: Any):
    registry.register_schema("customers", avro(record("com.shop.Customer", name="string")))
    order = record(id="string", customer="com.shop.Customer")
    references = [SchemaReference("com.shop.Customer", "customers", 1)]
    event = {"id": "ord-1", "customer": {"name": "Ada"}}
    payload = AvroSerializer(registry, avro(order, references=references))(event, VALUE)
    with client_at(live_server) as reader:
        assert AvroDeserializer(reader)(payload, VALUE) == event
    assert registry.get_referenced_by("customers", 1) == [registry.get_latest_version(ORDERS).schema_id]


def test_subjects_versions_and_levels_are_read_and_set(registry: SchemaRegistryClient):
    number = registry.register_schema(ORDERS, avro(V1), normalize_schemas=True)
    assert registry.register_schema_full_response(ORDERS, avro(V2)).schema_id == number + 1
    assert registry.get_subjects() == [ORDERS]
    assert registry.get_versions(ORDERS) == [1, 2]
    assert registry.lookup_schema(ORDERS, avro(V1)).version == 1
    assert registry.get_schema(number).schema_str == json.dumps(V1)
    assert registry.get_subjects_by_schema_id(number) == [ORDERS]
    assert [(one.subject, one.version) for one in registry.get_schema_versions(number)] == [(ORDERS, 1)]
    assert registry.get_schema_types() == ["AVRO", "JSON"]
    assert registry.get_compatibility() == "BACKWARD"
    registry.set_compatibility(ORDERS, "full_transitive")
    assert registry.get_compatibility(ORDERS) == "FULL_TRANSITIVE"
    assert str(registry.delete_config(ORDERS).compatibility_level) == "FULL_TRANSITIVE"
    assert registry.get_global_mode() == "READWRITE"


def test_missing_rows_and_deletions_have_documented_codes(registry: SchemaRegistryClient):
    registry.register_schema(ORDERS, avro(V1))
    assert refused(registry.get_latest_version, "none")[:2] == (404, 40401)
    assert refused(registry.get_version, ORDERS, 9)[:2] == (404, 40402)
    assert refused(registry.get_schema, 99)[:2] == (404, 40403)
    assert refused(registry.lookup_schema, ORDERS, avro(V2))[:2] == (404, 40403)
    assert refused(registry.get_compatibility, ORDERS)[:2] == (404, 40408)
    assert refused(registry.register_schema, ORDERS, Schema("{", "AVRO"))[:2] == (422, 42201)
    assert refused(registry.set_compatibility, ORDERS, "sideways")[:2] == (422, 42203)
    assert refused(registry.delete_subject, ORDERS)[:2] == (422, 42205)
    assert refused(registry.delete_version, ORDERS, 1)[:2] == (422, 42205)
    assert registry.get_versions(ORDERS) == [1]


def test_concurrent_registrations_of_one_schema_get_one_id(live_server: LiveServer, registry: SchemaRegistryClient):
    at_once = threading.Barrier(3)

    def register(schema: dict[str, Any]) -> int:
        with client_at(live_server) as client:
            at_once.wait(30)
            return int(client.register_schema(ORDERS, avro(schema)))

    with ThreadPoolExecutor(3) as threads:
        numbers = list(threads.map(register, (V1, V1, V1)))
    assert len(set(numbers)) == 1
    assert SubjectVersion.objects.count() == 1


def test_concurrent_registrations_of_several_schemas_are_versions_in_a_row(live_server: LiveServer, tenant: Tenant):
    at_once = threading.Barrier(3)
    schemas = [record(id="string", **{name: {"type": "int", "default": 0}}) for name in "abc"]

    def register(schema: dict[str, Any]) -> int:
        with client_at(live_server) as client:
            at_once.wait(30)
            return int(client.register_schema(ORDERS, avro(schema)))

    with ThreadPoolExecutor(3) as threads:
        numbers = list(threads.map(register, schemas))
    with client_at(live_server) as client:
        assert client.get_versions(ORDERS) == [1, 2, 3]
    assert len(set(numbers)) == 3
