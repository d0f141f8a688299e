"""Journey of a message on real Kafka: its original, the result of each stage, its times and its bins; and the
search for a message by any of its names."""

import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from confluent_kafka.admin import NewTopic
from cryptography.fernet import Fernet
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse
from pyroaring import BitMap64

from dataplane.ingest.stamp import message_id
from dataplane.ledger.audit import AUDIT_VERSION, AuditRecord, FactSet, encode
from dataplane.ledger.meta import META_HEADER, Headers, MessageMeta, encode_meta
from dataplane.ledger.units import format_position, position_of
from dataplane.names import AUDIT_TOPIC
from mgmt.messages.queries.journey import Journey, MessageNotFoundError, message_journey
from mgmt.messages.queries.message_search import find_messages
from mgmt.models import DeliveryAttempt, FactRow, HighOffset, Pipe, SettledOffset, Topic, User
from mgmt.services import create_pipe, create_tenant
from mgmt.tenancy.services.rate_limits import TryLimit
from tests.db.console.truth import go_live
from tests.support.kafka import admin_producer, broker_admin
from tests.support.sizes import JOURNEY_MESSAGES

pytestmark = [pytest.mark.django_db, pytest.mark.kafka_role("web")]
PARTITIONS = 2
SPEC = {
    "sources": {"shop": {"id": "order.number", "event_time": "at"}},
    "normalize": [{"op": "rename", "path": "order.total", "to": "order.amount"}, {"op": "remove", "path": "note"}],
    "routes": {
        "mode": "all",
        "rules": [
            {"when": "body.order.amount > 100.0", "to": ["crm"]},
            {"when": "body.order.amount > 1000.0", "to": ["fraud"]},
            {"when": "true", "to": ["audit"]},
        ],
    },
    "transform": {"crm": [{"op": "set", "path": "channel", "value": "web"}]},
    "destinations": {
        name: {"type": "http", "url": f"https://{name}.example.com/in"} for name in ("crm", "fraud", "audit")
    },
}
BODY = {"order": {"number": "A-1001", "total": 250.5}, "note": "ring twice", "at": "2026-11-21T12:00:00Z"}


class Story:
    """Stand-in for ingest, lanes and the Observer: writes a pipe's records and rows to Kafka and Postgres."""

    def __init__(self, kafka: str) -> None:
        self._producer = admin_producer({"bootstrap.servers": kafka, "linger.ms": 1})
        self._admin = broker_admin(kafka)
        alice = User.objects.create_user(f"alice-{uuid.uuid4().hex[:6]}")
        tenant = create_tenant(name=f"Alice {uuid.uuid4().hex[:6]}", owner=alice)
        self.alice, self.pipe = alice, create_pipe(tenant=tenant, name="orders", spec=SPEC, author=alice)
        go_live(self.pipe)
        self.pipe.refresh_from_db()
        self.topics = {purpose: f"penstock.pass-{uuid.uuid4().hex[:8]}" for purpose in ("ingest", "egress")}
        for purpose, name in self.topics.items():
            Topic.objects.filter(cell_id="c1", purpose=purpose).update(name=name, partitions=PARTITIONS)
        config = {"message.timestamp.type": "LogAppendTime"}
        made = [NewTopic(name, PARTITIONS, 1, config=config) for name in self.topics.values()]
        known = self._admin.list_topics(timeout=10).topics
        made += [] if AUDIT_TOPIC in known else [NewTopic(AUDIT_TOPIC, 4, 1)]
        for future in self._admin.create_topics(made).values():
            future.result(20)

    def ingest(self, body: dict[str, Any], *, pipe: str = "") -> tuple[MessageMeta, int]:
        """Store a message as ingest does; return its Meta and position."""
        now_us = time.time_ns() // 1_000
        id_ = message_id(now_us, uuid.uuid4().hex[:19])
        meta = MessageMeta(1, id_, pipe or self.pipe.id, 1, "shop", now_us - 40_000, now_us, now_us // 60_000_000)
        offset = self._store("ingest", msgspec.json.encode(body), meta, 1)
        return meta, position_of(1, 1, offset)

    def fill(self, count: int) -> None:
        """Put so many messages of other pipes on the ingest topic."""
        id_ = message_id(time.time_ns() // 1_000, uuid.uuid4().hex[:19])
        meta = encode_meta(MessageMeta(1, id_, "other", 1, "shop", 0, 0, 0))
        topic, produce = self.topics["ingest"], self._producer.produce
        for number in range(count):
            while True:
                try:
                    produce(topic, b"{}", partition=number % PARTITIONS, headers=[(META_HEADER, meta)])
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self.flush()

    def depart(self, meta: MessageMeta, position: int, destination: str) -> None:
        """Store what the process lane writes for one destination."""
        left = msgspec.structs.replace(meta, position=position, destination=destination)
        self._store("egress", b"{}", left, 0)

    def tell(self, meta: MessageMeta, position: int, node: str, fact: str, detail: str = "") -> None:
        """Store a fact as a lane's audit record and as the Observer's row."""
        units = BitMap64([position])
        facts = [FactSet(meta.pipe, node, meta.bucket, fact, detail, 0, units.serialize())]
        audit = AuditRecord(AUDIT_VERSION, "c1", "lane", "transmit", time.time_ns() // 1_000, [], [], facts, [])
        self._producer.produce(AUDIT_TOPIC, encode(audit), key=b"c1")
        place = {"bucket": meta.bucket, "node": node, "fact": fact, "detail": detail, "audit_partition": 0}
        row = FactRow.objects.filter(pipe_id=meta.pipe, **place).first() or FactRow(
            pipe_id=meta.pipe, positions=BitMap64().serialize(), **place
        )
        units |= BitMap64.deserialize(bytes(row.positions))
        row.positions, row.count = units.serialize(), len(units)
        row.save()

    def attempt(self, meta: MessageMeta, position: int, destination: str, outcome: str, status: int) -> None:
        """Store a recorded attempt."""
        DeliveryAttempt.objects.create(
            pipe_id=meta.pipe, destination=destination, message_id=meta.id, position=position, revision=1,
            bucket=meta.bucket, number=1, at=datetime.now(UTC), status=status, outcome=outcome,
            reason="" if status < 300 else "server-error", address="203.0.113.9",
            timing_us={"dns": 100, "connect": 900, "tls": 4_000, "first_byte": 30_000, "total": 31_000},
            next_at=datetime.now(UTC) if outcome == "parked" else None,
        )  # fmt: skip

    def pass_by(self, meta: MessageMeta) -> None:
        """Set the settled offsets of every lane beyond all messages."""
        for purpose, name in self.topics.items():
            for partition in range(PARTITIONS):
                SettledOffset.objects.create(topic=name, partition=partition, offset=1_000_000)
                if purpose == "egress":
                    HighOffset.objects.create(
                        pipe_id=meta.pipe, bucket=meta.bucket, topic=name, partition=partition, offset=1
                    )

    def flush(self) -> None:
        """Wait until everything is stored."""
        assert self._producer.flush(60) == 0

    def close(self) -> None:
        """Delete the topics."""
        for future in self._admin.delete_topics(list(self.topics.values())).values():
            future.result(20)

    def _store(self, purpose: str, body: bytes, meta: MessageMeta, partition: int) -> int:
        found: list[int] = []
        headers: Headers = [(META_HEADER, encode_meta(meta)), ("content-type", b"application/json")]
        self._producer.produce(
            self.topics[purpose], body, partition=partition, headers=headers,
            on_delivery=lambda _, message: found.append(message.offset()),
        )  # fmt: skip
        self.flush()
        return found[0]


def tell_a_whole_way(story: Story) -> tuple[MessageMeta, int]:
    """Store a journey: delivered to crm at the second attempt, lost before audit, not routed to fraud."""
    meta, position = story.ingest(BODY)
    for node, fact, detail in (
        ("ingest", "sent", "acked"),
        ("ingest", "sent", "seen"),
        ("process", "sent", ""),
        ("transform:crm", "sent", ""),
        ("transform:audit", "sent", ""),
    ):
        story.tell(meta, position, node, fact, detail)
    story.depart(meta, position, "crm")
    story.depart(meta, position, "audit")
    story.attempt(meta, position, "crm", "parked", 503)
    story.tell(meta, position, "transmit:crm", "parked", "1")
    story.tell(meta, position, "transmit:crm", "released", "1")
    story.tell(meta, position, "transmit:crm", "delivered")
    story.pass_by(meta)
    story.flush()
    return meta, position


@pytest.fixture
def story(kafka_servers: str, settings: LazySettings) -> Iterator[Story]:
    settings.PENSTOCK_KAFKA = kafka_servers
    settings.PENSTOCK_FERNET_KEYS = [Fernet.generate_key().decode()]
    made = Story(kafka_servers)
    yield made
    made.close()


def read(story: Story) -> tuple[MessageMeta, Journey]:
    meta, position = tell_a_whole_way(story)
    return meta, message_journey(story.pipe, position)


def test_every_stage_is_recomputed_from_the_original(story: Story):
    _, found = read(story)
    assert [stage.node for stage in found.stages] == ["normalize", "route"]
    normalized = msgspec.json.decode(found.stages[0].result.body)
    assert normalized == {"order": {"number": "A-1001", "amount": 250.5}, "at": BODY["at"]}
    assert msgspec.json.decode(found.stages[0].before) == BODY
    assert [(rule.held, rule.to) for rule in found.rules] == [(True, ("crm",)), (False, ("fraud",)), (True, ("audit",))]
    crm = next(leg for leg in found.legs if leg.destination == "crm")
    assert crm.transform is not None
    assert msgspec.json.decode(crm.transform.result.body)["channel"] == "web"
    assert found.not_sent_to == ["fraud"]
    assert crm.request is not None
    assert "penstock-position: 1-1-0" in crm.request.headers


def test_times_and_bins_are_those_of_the_broker_the_attempts_and_the_ledger(story: Story):
    meta, found = read(story)
    legs = {leg.destination: leg for leg in found.legs}
    assert {name: leg.bin for name, leg in legs.items()} == {"crm": "delivered", "audit": "lost"}
    assert [line.outcome for line in legs["crm"].attempts] == ["parked"]
    assert found.record is not None
    assert found.record.stored_at is not None
    came_at = datetime.fromtimestamp(meta.ingest_time_us // 1_000 / 1_000, UTC)
    assert legs["crm"].left_at is not None
    assert came_at <= found.record.stored_at <= legs["crm"].left_at
    told = {key.fact: at for key, at in legs["crm"].reported_at.items()}
    assert told.keys() == {"released", "delivered"}, "facts without an attempt come from the audit records"


def test_page_shows_the_journey_and_where_a_lost_message_was_seen_last(story: Story, client: Client):
    _, position = tell_a_whole_way(story)
    client.force_login(story.alice)
    page = client.get(reverse("console:message", args=[story.pipe.id, format_position(position)])).content.decode()
    assert "delivered to 1 of 2" in page
    assert "rule 2" in page
    assert "The transmit lanes passed its offset without reading it." in page
    assert "Returned 503" in page
    assert "ring twice" in page


def test_message_is_found_by_our_id_by_its_position_and_by_the_customers_own_id(story: Story, client: Client):
    story.ingest({"order": {"number": "A-1000"}})
    meta, position = story.ingest(BODY)
    story.ingest({"order": {"number": "A-1002"}})
    for text in (meta.id, format_position(position), "A-1001"):
        (found,) = find_messages([story.pipe], text)
        assert (found.pipe_id, found.position) == (story.pipe.id, position), text
    client.force_login(story.alice)
    answer = client.get("/", {"q": meta.id}, follow=True)
    assert answer.redirect_chain[-1][0] == reverse("console:message", args=[story.pipe.id, format_position(position)])
    assert meta.id in answer.content.decode()


def test_api_returns_the_journey_that_the_page_shows(story: Story, client: Client):
    meta, position = tell_a_whole_way(story)
    client.force_login(story.alice)
    path = f"messages/{format_position(position)}/"
    page = client.get(reverse("console:message", args=[story.pipe.id, format_position(position)])).context
    found = client.get(f"/api/v1/pipes/{story.pipe.id}/{path}").json()
    assert (found["message_id"], found["minute"], found["state"]) == (meta.id, meta.bucket, page["words"])
    assert msgspec.json.decode(found["body"]) == BODY
    assert found["arrival"]["lag_us"] == page["arrival"].age_us == 40_000
    assert [(one["node"], one["outcome"], one["after"]) for one in found["stages"]] == [
        (stage.node, stage.result.outcome, stage.result.body) for stage in page["journey"].stages
    ]
    assert [(one["number"], one["matched"], one["to"]) for one in found["rules"]] == [
        (1, True, ["crm"]), (2, False, ["fraud"]), (3, True, ["audit"]),
    ]  # fmt: skip
    assert found["not_sent_to"] == ["fraud"]
    legs = {leg["destination"]: leg for leg in found["destinations"]}
    assert {name: leg["bin"] for name, leg in legs.items()} == {"crm": "delivered", "audit": "lost"}
    for line in page["legs"]:
        leg = legs[line.destination]
        assert (leg["to_egress_us"], leg["to_answer_us"], leg["whole_us"]) == (
            line.left_us,
            line.took_us,
            line.whole_us,
        )
        assert (leg["last_seen"], leg["last_seen_words"]) == (line.last_seen or ("", ""))
        assert [one["status"] for one in leg["attempts"]] == [attempt.status for attempt in line.leg.attempts]
    assert legs["crm"]["request"]["url"] == "https://crm.example.com/in"
    assert path in page["curl"]


def test_api_finds_a_message_by_each_of_its_names_and_only_for_its_tenant(story: Story, client: Client):
    meta, position = story.ingest(BODY)
    paths = [f"pipes/{story.pipe.id}/messages/", f"tenants/{story.pipe.tenant_id}/messages/"]
    client.force_login(story.alice)
    for path in paths:
        for text in (meta.id, format_position(position), "A-1001"):
            found = client.get(f"/api/v1/{path}", {"q": text}).json()
            assert [one["position"] for one in found["results"]] == [format_position(position)], text
            assert client.get(found["results"][0]["url"]).json()["message_id"] == meta.id
        assert client.get(f"/api/v1/{path}", {"q": "A-1002"}).json() == {"results": [], "more": False}
    charlie = User.objects.create_user(f"charlie-{uuid.uuid4().hex[:6]}")
    own = create_pipe(tenant=create_tenant(name="own", owner=charlie), name="own", spec=SPEC, author=charlie)
    go_live(own)
    client.force_login(charlie)
    for path in (f"pipes/{own.id}/messages/", f"tenants/{own.tenant_id}/messages/"):
        for text in (meta.id, format_position(position), "A-1001"):
            assert client.get(f"/api/v1/{path}", {"q": text}).json()["results"] == []
    assert client.get(f"/api/v1/pipes/{own.id}/messages/{format_position(position)}/").status_code == 404


def test_message_of_another_pipe_is_not_found(story: Story):
    meta, position = story.ingest(BODY, pipe="pipe_of_somebody_else")
    with pytest.raises(MessageNotFoundError):
        message_journey(story.pipe, position)
    for text in (meta.id, format_position(position), "A-1001"):
        assert find_messages([story.pipe], text) == []


def test_unused_position_holds_no_message(story: Story):
    story.ingest(BODY)
    with pytest.raises(MessageNotFoundError):
        message_journey(Pipe.objects.get(id=story.pipe.id), position_of(1, 0, 5))


def test_receipt_shows_the_state_of_a_message_and_none_of_its_data(story: Story, client: Client):
    meta, _ = tell_a_whole_way(story)
    url = reverse("console:receipt", args=[meta.id])
    answer = client.get(url, headers={"accept": "application/json"})
    told = answer.json()
    assert told.keys() == {
        "id", "standing", "next", "received_at", "destinations", "causes", "failed_tries", "last_failed_at",
        "next_try_at",
    }  # fmt: skip
    assert (told["id"], told["standing"], told["destinations"]) == (meta.id, "final", {"delivered": 1, "lost": 1})
    assert (told["failed_tries"], told["next_try_at"]) == (1, None)
    page = client.get(url).content.decode()
    assert "final" in page
    assert "Failed attempts" in page
    for secret in ("ring twice", "A-1001", "crm", "shop", story.pipe.name, story.pipe.id, story.pipe.tenant_id):
        assert secret not in page
        assert secret not in answer.content.decode()
    client.force_login(User.objects.create_user(f"charlie-{uuid.uuid4().hex[:6]}"))
    assert story.pipe.id not in client.get(url).content.decode(), "a user of another tenant gets no link"
    client.force_login(story.alice)
    assert reverse("console:message", args=[story.pipe.id, "1-1-0"]) in client.get(url).content.decode()


@pytest.mark.parametrize("message_id", ["nonsense", "019a0000-0000-7000-8000-000000000000"])
def test_unknown_message_has_no_receipt(story: Story, client: Client, message_id: str):
    story.ingest(BODY)
    assert client.get(reverse("console:receipt", args=[message_id])).status_code == 404


def test_too_many_receipt_requests_are_refused(story: Story, client: Client, monkeypatch: pytest.MonkeyPatch):
    meta, _ = story.ingest(BODY)
    monkeypatch.setattr("mgmt.messages.pages.receipt.RECEIPTS", TryLimit("receipts", 1, timedelta(minutes=5)))
    url = reverse("console:receipt", args=[meta.id])
    answers = [client.get(url, REMOTE_ADDR="203.0.113.77").status_code for _ in range(2)]
    assert answers == [200, 429]


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.timeout(900)
def test_one_message_among_millions_is_found_within_a_second(story: Story, client: Client):
    story.fill(JOURNEY_MESSAGES // 2)
    meta, position = tell_a_whole_way(story)
    story.fill(JOURNEY_MESSAGES // 2)
    client.force_login(story.alice)
    page = reverse("console:message", args=[story.pipe.id, format_position(position)])
    for url in (page, f"/find/?q={meta.id}", f"/find/?q={format_position(position)}"):
        client.get(url)  # the first request loads templates
        began = time.monotonic()
        answer = client.get(url)
        assert time.monotonic() - began < 1.0, url
        assert answer.status_code == 200 if url == page else answer.headers["location"] == page, url
