"""Comparison of a draft with the live revision on real Kafka: it reads the pipe's own newest events only."""

import time
import uuid
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewTopic
from cryptography.fernet import Fernet
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse
from pyroaring import BitMap64

from dataplane.ledger.facts import ACKED
from dataplane.ledger.meta import META_HEADER, MessageMeta, encode_meta
from dataplane.ledger.units import format_position, position_of
from mgmt.messages.queries import records
from mgmt.messages.queries.last_event import newest_events
from mgmt.messages.queries.records import RecordUnavailableError, read_records
from mgmt.models import FactRow, Pipe, Topic, User
from mgmt.services import create_pipe, create_tenant
from tests.db.console.truth import go_live
from tests.support.kafka import admin_producer, broker_admin

pytestmark = [pytest.mark.django_db, pytest.mark.kafka_role("web")]
PARTITIONS = 2
BUCKET = 29_000_000
SPEC: dict[str, Any] = {
    "sources": {"shop": {}},
    "destinations": {n: {"type": "http", "url": f"https://{n}.example.com/in"} for n in ("crm", "books")},
}
DRAFT = SPEC | {"routes": {"rules": [{"when": "body.total > 100", "to": ["crm", "books"]}], "otherwise": ["books"]}}


class Cell:
    """An ingest topic that two tenants share, and the ledger's rows of its events."""

    def __init__(self, kafka: str) -> None:
        self._producer = admin_producer({"bootstrap.servers": kafka, "linger.ms": 1})
        self.admin = broker_admin(kafka)
        self.alice, charlie = (User.objects.create_user(f"{name}-{uuid.uuid4().hex[:6]}") for name in ("a", "c"))
        self.ours, self.theirs = self._pipe(self.alice), self._pipe(charlie)
        self.topic = f"penstock.compare-{uuid.uuid4().hex[:8]}"
        for future in self.admin.create_topics([NewTopic(self.topic, PARTITIONS, 1)]).values():
            future.result(20)
        Topic.objects.filter(cell_id="c1", purpose="ingest").update(name=self.topic, partitions=PARTITIONS)

    def store(self, pipe: Pipe, *bodies: bytes, partition: int = 0, source: str = "shop") -> list[int]:
        """Store events of a pipe as ingest does; return their offsets."""
        found: list[int] = []
        for number, body in enumerate(bodies):
            now_us = time.time_ns() // 1_000 + number
            meta = MessageMeta(1, uuid.uuid4().hex, pipe.id, 1, source, now_us, now_us, BUCKET)
            while True:
                try:
                    self._producer.produce(
                        self.topic, body, partition=partition, headers=[(META_HEADER, encode_meta(meta))],
                        on_delivery=lambda _, message: found.append(message.offset()),
                    )  # fmt: skip
                    break
                except BufferError:
                    self._producer.poll(0.1)
        assert self._producer.flush(60) == 0
        return found

    def account(self, pipe: Pipe, *places: tuple[int, int], bucket: int = BUCKET) -> list[int]:
        """Store the ledger's row of accepted events by (partition, offset), as the Observer does."""
        positions = BitMap64(position_of(1, *place) for place in places)
        FactRow.objects.create(
            pipe_id=pipe.id, node="ingest", bucket=bucket, fact="sent", detail=ACKED, audit_partition=0,
            positions=positions.serialize(), count=len(positions),
        )  # fmt: skip
        return list(positions)

    def expire(self, partition: int, before: int) -> None:
        """Delete the records below an offset, as the retention time does."""
        for future in self.admin.delete_records([TopicPartition(self.topic, partition, before)]).values():
            future.result(20)

    def close(self) -> None:
        """Delete the topic."""
        for future in self.admin.delete_topics([self.topic]).values():
            future.result(20)

    def _pipe(self, owner: User) -> Pipe:
        tenant = create_tenant(name=f"{owner.username}'s", owner=owner)
        pipe = create_pipe(tenant=tenant, name="orders", spec=SPEC, author=owner)
        go_live(pipe)
        pipe.refresh_from_db()
        return pipe


@pytest.fixture
def cell(kafka_servers: str, settings: LazySettings) -> Iterator[Cell]:
    settings.PENSTOCK_KAFKA = kafka_servers
    settings.PENSTOCK_FERNET_KEYS = [Fernet.generate_key().decode()]
    made = Cell(kafka_servers)
    yield made
    made.close()


def bodies_at(cell: Cell, offsets: dict[int, list[int]]) -> set[bytes]:
    return {one.body for one in read_records(cell.topic, offsets, pipes=(cell.ours.id,))}


def test_records_are_read_by_offset_near_and_far_and_from_all_partitions(cell: Cell):
    filler = [b"{}"] * (records.FAR + 200)
    wanted: dict[int, list[int]] = {}
    for partition in range(PARTITIONS):
        for number in range(3):
            wanted.setdefault(partition, []).extend(
                cell.store(cell.ours, b"%d/%d" % (partition, number), partition=partition)
            )
            cell.store(cell.theirs, *filler, partition=partition)
    assert bodies_at(cell, wanted) == {b"%d/%d" % (p, n) for p in range(PARTITIONS) for n in range(3)}


def test_records_of_another_pipe_are_left_out_even_if_their_offsets_are_named(cell: Cell):
    (ours,), (theirs,) = cell.store(cell.ours, b'"ours"'), cell.store(cell.theirs, b'"theirs"')
    assert bodies_at(cell, {0: [ours, theirs]}) == {b'"ours"'}


def test_records_past_the_retention_time_or_the_end_are_left_out(cell: Cell):
    offsets = cell.store(cell.ours, *(b"%d" % number for number in range(6)))
    cell.store(cell.ours, b'"other partition"', partition=1)
    cell.expire(0, offsets[3])
    assert bodies_at(cell, {0: [*offsets, 99_999], 1: [0, 5_000]}) == {b"3", b"4", b"5", b'"other partition"'}


def test_nothing_read_in_time_is_an_error_and_not_an_empty_result(cell: Cell, monkeypatch: pytest.MonkeyPatch):
    (offset,) = cell.store(cell.ours, b"1")
    monkeypatch.setattr(records, "READ_S", 0.0)
    with pytest.raises(RecordUnavailableError, match="the brokers do not respond"):
        bodies_at(cell, {0: [offset]})


def test_newest_events_come_from_the_newest_minutes_and_from_all_partitions(cell: Cell):
    for partition in range(PARTITIONS):
        cell.store(cell.ours, *(b"%d" % number for number in range(10)), partition=partition)
    cell.account(cell.ours, *((0, offset) for offset in range(5)), bucket=BUCKET)
    cell.account(cell.ours, *((p, offset) for p in range(PARTITIONS) for offset in range(5, 10)), bucket=BUCKET + 1)
    events, wanted = newest_events(cell.ours, 6, most_bytes=1_000)
    assert wanted == 6
    places = {(one.record.partition, one.record.offset) for one in events}
    assert places == {(p, offset) for p in range(PARTITIONS) for offset in (7, 8, 9)}
    events, wanted = newest_events(cell.ours, 12, most_bytes=1_000)
    assert (len(events), wanted) == (12, 12)
    assert {one.record.offset for one in events if one.record.partition == 0} == {3, 4, 5, 6, 7, 8, 9}


def test_draft_is_compared_with_the_last_events_in_api_and_page(cell: Cell, client: Client):
    bodies = [msgspec.json.encode({"n": number, "total": 150 if number % 10 else 50}) for number in range(30)]
    ours = cell.store(cell.ours, *bodies[:20]) + cell.store(cell.ours, b'{"n":99}', b'{"n":98,"total":"a"}')
    foreign = cell.store(cell.theirs, b'{"total":1,"secret":"theirs"}')
    others = cell.store(cell.ours, *bodies[20:], partition=1)
    cell.account(cell.ours, *((0, offset) for offset in [*ours, *foreign]), *((1, offset) for offset in others))
    client.force_login(cell.alice)
    answer = client.post(f"/api/v1/pipes/{cell.ours.id}/compare/", {"spec": DRAFT}, content_type="application/json")
    assert answer.status_code == 200, answer.content
    found = answer.json()
    assert found["counts"] == {"same": 27, "changed": 0, "rerouted": 3, "rejected": 2, "recovered": 0}
    assert found["summary"] == "27 same, 3 re-routed, 2 rejected"
    assert found["left_out"] == ["Not read: 1 event, which are too old or did not arrive in time."]
    assert "theirs" not in answer.content.decode()
    rerouted = [one for one in found["examples"] if one["kind"] == "rerouted"]
    assert [(one["live_to"], one["draft_to"]) for one in rerouted] == [(["books", "crm"], ["books"])] * 3
    assert {"kind": "gone", "text": "to crm: POST https://crm.example.com/in"} in rerouted[0]["lines"]
    assert all(client.get(one["url"]).status_code == 200 for one in found["examples"])

    page = client.post(
        reverse("console:edit_pipe", args=[cell.ours.id]),
        {
            "mode": "json",
            "action": "compare",
            "based_on": "1",
            "spec": msgspec.json.encode(DRAFT).decode(),
            "sample": "{}",
        },
    ).content.decode()
    assert "27 same, 3 re-routed, 2 rejected" in page
    assert "theirs" not in page
    position = format_position(position_of(1, 0, ours[-2]))
    assert reverse("console:message", args=[cell.ours.id, position]) in page
    assert "rule 1:" in page
    assert cell.ours.revisions.count() == 1
