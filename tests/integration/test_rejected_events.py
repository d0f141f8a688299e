"""Rejected events from a real HTTP response to the page: counted once, by the key that sent them, with a sample."""

import http.client
import json
import re
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse

from controlplane.settings import control_settings
from controlplane.topics import TopicCreator, cluster_plans
from dataplane.names import AUDIT_TOPIC
from dataplane.schemas.types import SchemaType
from dataplane.spec.keys import key_digest
from dataplane.tables.records import EventTypesRecord, RegisteredSchema, SubjectRecord
from mgmt.models import ApiKey, AuditOffset, Pipe, Rejection, RejectionMinute, SubjectVersion, User, VersionHour
from mgmt.registry.drafts import SchemaDraft
from mgmt.services import create_pipe, create_tenant, register_version, set_event_types
from tests.db.console.truth import plain
from tests.integration.controlplane.observing import observing
from tests.integration.controlplane.test_observer_process import end_of_audit
from tests.support.cluster import KEY, Cluster
from tests.support.ingest_replica import Replica
from tests.support.patience import until

pytestmark = pytest.mark.django_db(transaction=True)
ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "int"}, {"name": "email", "type": ["null", "string"], "default": None}],
}
SPEC: dict[str, Any] = {
    "sources": {"shop": {}},
    "normalize": [{"op": "mask", "path": "email"}],
    "destinations": {"crm": {"type": "http", "url": "https://crm.example.com/in"}},
}


@pytest.fixture
def pipe(settings: LazySettings) -> Pipe:
    """Pipe of Alice with an API key, and an event type whose schema needs a whole number."""
    settings.PENSTOCK_FERNET_KEYS = [Fernet.generate_key().decode()]
    alice = User.objects.create_user("alice")
    made = create_pipe(tenant=create_tenant(name="Alice's", owner=alice), name="orders", spec=SPEC, author=alice)
    source = made.sources.get()
    ApiKey.objects.create(source=source, label="checkout", prefix=KEY[:12], digest=key_digest(KEY))
    draft = SchemaDraft(SchemaType.AVRO, json.dumps(ORDER))
    register_version(tenant=made.tenant, subject="orders", draft=draft, author=alice)
    set_event_types(source=source, type_from="", subjects={"": "orders"}, by=alice)
    return made


@pytest.fixture
def cluster(kafka_servers: str, pipe: Pipe) -> Cluster:
    """Topics and records of the pipe's cell. The Observer reads audit records from now on."""
    TopicCreator(kafka_servers).ensure(cluster_plans(control_settings().topics))
    for partition in range(4):
        AuditOffset.objects.create(
            topic=AUDIT_TOPIC, partition=partition, next_offset=end_of_audit(kafka_servers, partition)
        )
    made = Cluster(kafka_servers, cell="rejects", partitions=1)
    made.make_cell_topics(())
    made.publish_cell()
    made.publish(subject_record(pipe), EventTypesRecord(pipe.id, "shop", 1, "", {"": "orders"}))
    destinations = {"crm": {"url": "http://127.0.0.1:1/"}}
    made.add_pipe(pipe.id, KEY, destinations, tenant=pipe.tenant_id, normalize=SPEC["normalize"])
    return made


def subject_record(pipe: Pipe) -> SubjectRecord:
    """Return the record of the pipe's subject, as the Provisioner publishes it."""
    versions = SubjectVersion.objects.filter(subject__name="orders").select_related("schema").order_by("number")
    schemas = [
        RegisteredSchema(one.schema.number, one.number, SchemaType.AVRO, one.schema.fingerprint, one.schema.document)
        for one in versions
    ]
    return SubjectRecord(pipe.tenant_id, "orders", len(schemas), schemas)


def post(port: int, events: list[Any]) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", "/v1/events", json.dumps(events), headers)
        answer = connection.getresponse()
        return answer.status, json.load(answer)
    finally:
        connection.close()


def is_up(port: int) -> bool:
    try:
        return post(port, [])[0] == 202
    except OSError:
        return False


def stored() -> int:
    return sum(RejectionMinute.objects.values_list("events", flat=True))


def traffic(number: int) -> tuple[int, int]:
    """Return the events accepted and rejected with a version of the subject."""
    rows = VersionHour.objects.filter(version__number=number).values_list("accepted", "rejected")
    return sum(accepted for accepted, _ in rows), sum(rejected for _, rejected in rows)


@pytest.mark.timeout(600)
def test_refused_event_is_shown_with_its_sender_and_accepted_by_a_new_version(
    cluster: Cluster, pipe: Pipe, tmp_path: Path, client: Client
):
    client.force_login(User.objects.get())
    replica = Replica(cluster, tmp_path)
    event = {"id": "a-1", "email": "bob@example.com"}
    try:
        until(lambda: is_up(replica.port), limit_s=60)
        status, answer = post(replica.port, [event, {"id": 1}, event])
        assert (status, [one.get("code") for one in answer["items"]]) == (207, ["schema", None, "schema"])
        with observing():
            until(lambda: stored() == 2, limit_s=60)
            assert post(replica.port, [event])[0] == 422
            until(lambda: stored() == 3, limit_s=60)
        shown = plain(client.get(reverse("console:rejections", args=[pipe.id])).content.decode())
        assert f"/id: needs int, got a text /id - shop checkout ({KEY[:12]}...) 3 " in shown
        row = Rejection.objects.get()
        page = client.get(reverse("console:rejection", args=[pipe.id, row.pk])).content.decode()
        assert "***" in page
        assert "bob@example.com" not in page
        assert "bob@example.com" not in str(row.samples), "masked before it leaves ingest"
        url = reverse("console:accept_rejected", args=[pipe.id, row.pk])
        text = client.get(url).context["text"]
        client.post(url, {"schema": text, "action": "register"})
        cluster.publish(subject_record(pipe))
        until(lambda: post(replica.port, [event])[0] == 202, limit_s=30)
        with observing():
            until(lambda: traffic(2)[0] == 1, limit_s=60)
        assert traffic(1)[0] == 1
        assert traffic(1)[1] >= 3, "also those sent before ingest had read version 2"
        subject = SubjectVersion.objects.filter(subject__name="orders")[0].subject
        shown = client.get(reverse("console:subject", args=[subject.id])).content.decode()
        assert re.search(r"Version 1 .* 1 [3-9]\d* rejected \(", plain(shown))
    finally:
        replica.close()
