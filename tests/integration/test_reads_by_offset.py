"""Records read by offset, on real Kafka: tenants share topics, so an offset alone reveals no message."""

import uuid
from datetime import UTC, datetime

import pytest
from confluent_kafka.admin import NewTopic
from cryptography.fernet import Fernet
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse
from pyroaring import BitMap64

from dataplane.ledger.deadletter import DeadLetterReason, dead_headers
from dataplane.ledger.facts import ACKED
from dataplane.ledger.meta import META_HEADER, MessageMeta, encode_meta
from dataplane.ledger.units import position_of
from mgmt.deliveries.services.offset_sets import OffsetSetKey, StoredPosition, add_places
from mgmt.messages.queries.last_event import last_event
from mgmt.messages.queries.records import RecordUnavailableError
from mgmt.models import Alert, DeadLetter, FactRow, OffsetSet, Pipe, Topic, User
from mgmt.services import NothingToProbeError, create_pipe, create_tenant, probe_alert
from tests.db.console.truth import go_live
from tests.support.kafka import admin_producer, broker_admin

pytestmark = [pytest.mark.django_db, pytest.mark.kafka_role("web")]
SPEC = {"sources": {"shop": {}}, "destinations": {"crm": {"type": "http", "url": "https://crm.example.com/in"}}}
OURS, THEIRS = b'{"whose": "ours"}', b'{"whose": "theirs, and secret"}'


class Stored:
    """Dead letters of two tenants' pipes on one topic, and one on a topic that only the other tenant uses."""

    def __init__(self, kafka: str) -> None:
        self._producer = admin_producer({"bootstrap.servers": kafka, "linger.ms": 1})
        self._admin = broker_admin(kafka)
        self.alice = User.objects.create_user(f"alice-{uuid.uuid4().hex[:6]}")
        charlie = User.objects.create_user(f"charlie-{uuid.uuid4().hex[:6]}")
        self.ours, self.theirs = self._pipe(self.alice), self._pipe(charlie)
        self.shared, self.foreign = (f"penstock.places-{uuid.uuid4().hex[:8]}" for _ in range(2))
        for future in self._admin.create_topics([NewTopic(self.shared, 1, 1), NewTopic(self.foreign, 1, 1)]).values():
            future.result(20)
        Topic.objects.filter(cell_id="c1", purpose="ingest").update(name=self.shared, partitions=1)
        self.place_of_ours = self._store(self.shared, self.ours, OURS)
        self.places_of_theirs = [self._store(name, self.theirs, THEIRS) for name in (self.shared, self.foreign)]

    def letter(self, place: tuple[str, int]) -> DeadLetter:
        """Create a row of our pipe that names this offset."""
        return DeadLetter.objects.create(
            pipe_id=self.ours.id, destination="crm", message_id="m1", position=0, at=datetime.now(UTC),
            topic=place[0], partition=0, offset=place[1], node="transmit:crm", cause="rejected",
            bucket=29_000_000, revision=1, attempts=0,
        )  # fmt: skip

    def close(self) -> None:
        """Delete the topics."""
        for future in self._admin.delete_topics([self.shared, self.foreign]).values():
            future.result(20)

    def _pipe(self, owner: User) -> Pipe:
        tenant = create_tenant(name=f"{owner.username}'s", owner=owner)
        pipe = create_pipe(tenant=tenant, name="orders", spec=SPEC, author=owner)
        go_live(pipe)
        pipe.refresh_from_db()
        return pipe

    def _store(self, topic: str, pipe: Pipe, body: bytes) -> tuple[str, int]:
        meta = MessageMeta(1, "m1", pipe.id, 1, "shop", 0, 0, 29_000_000, destination="crm")
        death = DeadLetterReason("transmit:crm", "rejected", "rejected: returned 401", "401\nno")
        headers = dead_headers(meta, [(META_HEADER, encode_meta(meta))], death)
        found: list[int] = []
        self._producer.produce(
            topic, body, partition=0, headers=headers, on_delivery=lambda _, message: found.append(message.offset())
        )
        assert self._producer.flush(20) == 0
        return topic, found[0]


@pytest.fixture
def stored(kafka_servers: str, settings: LazySettings):
    settings.PENSTOCK_KAFKA = kafka_servers
    settings.PENSTOCK_FERNET_KEYS = [Fernet.generate_key().decode()]
    made = Stored(kafka_servers)
    yield made
    made.close()


def api_and_page(client: Client, letter: DeadLetter) -> tuple[dict[str, object], str]:
    api = client.get(f"/api/v1/pipes/{letter.pipe_id}/dead-letters/{letter.id}/").json()
    page = client.get(reverse("console:dead_letter", args=[letter.pipe_id, letter.id])).content.decode()
    return api, page


def test_dead_letter_of_ones_own_pipe_shows_its_message(stored: Stored, client: Client):
    client.force_login(stored.alice)
    api, page = api_and_page(client, stored.letter(stored.place_of_ours))
    assert api["message"]["body"] == OURS.decode()  # type: ignore[index]
    assert "ours" in page


@pytest.mark.parametrize("place", [0, 1], ids=["shared topic", "topic of the other tenant alone"])
def test_dead_letter_never_shows_another_pipes_message(stored: Stored, client: Client, place: int):
    client.force_login(stored.alice)
    api, page = api_and_page(client, stored.letter(stored.places_of_theirs[place]))
    assert api["message"] is None
    assert "another pipe" in str(api["message_missing"])
    assert "theirs" not in page
    assert "another pipe" in page


def test_newest_event_is_never_one_of_another_pipe(stored: Stored):
    _, offset = stored.places_of_theirs[0]
    FactRow.objects.create(
        pipe_id=stored.ours.id, node="ingest", bucket=29_000_000, fact="sent", detail=ACKED, audit_partition=0, count=1,
        positions=BitMap64([position_of(1, 0, offset)]).serialize(),
    )  # fmt: skip
    with pytest.raises(RecordUnavailableError):
        last_event(stored.ours)


def test_probe_never_sends_another_pipes_held_message(stored: Stored):
    topic, offset = stored.places_of_theirs[0]
    hour = int(datetime.now(UTC).timestamp()) // 3600
    where = OffsetSetKey(stored.ours.id, "crm", OffsetSet.Kind.HELD, "", topic, 0, hour)
    add_places([StoredPosition(where, offset, hour * 3600)])
    now = datetime.now(UTC)
    alert = Alert.objects.create(pipe=stored.ours, destination="crm", cause="suspended", opened_at=now, last_at=now)
    with pytest.raises(NothingToProbeError, match="another pipe"):
        probe_alert(alert=alert, by=stored.alice, now=now)
