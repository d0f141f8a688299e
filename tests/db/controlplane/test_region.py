"""Rows of topics after a failover to a mirrored cluster."""

from collections.abc import Iterable
from datetime import UTC, datetime

import pytest
from django.db import connection
from pyroaring import BitMap64

from controlplane.observer.main import ObserverSession
from controlplane.observer.metrics import ObserverMetrics
from controlplane.observer.reader import AuditReader, lock_name, start_offset
from controlplane.region import ObserverRunsError, TopicMissingOnClusterError, bind_topics
from controlplane.settings import control_settings
from controlplane.topics import ExistingTopic, TopicCreator
from dataplane.mirror.clusters import MirrorCluster
from dataplane.mirror.records import MirrorRecords, Promotion
from dataplane.names import AUDIT_TOPIC, PartitionKey
from mgmt.deliveries.services.offset_sets import OffsetSetKey, StoredPosition, add_places
from mgmt.models import AuditOffset, Cell, DeadLetter, HeldMessage, HighOffset, OffsetSet, SettledOffset, Topic

DEAD, HELD = "penstock.c1.dead.g1", "penstock.c1.held.g1"
STORED = {AUDIT_TOPIC: {0: 990}, DEAD: {0: 40}, HELD: {0: 50}}
NAME = "penstock.c1.ingest.g1"


@pytest.fixture
def cell(db: None) -> Cell:
    cell = Cell.objects.get_or_create(id="c1")[0]
    Topic.objects.filter(cell=cell).delete()
    Topic.objects.create(cell=cell, purpose="ingest", generation=1, name=NAME, topic_id="old", partitions=4)
    return cell


def test_topics_are_bound_to_the_ids_of_the_promoted_cluster_and_the_cell_is_published(cell: Cell):
    before = cell.version
    assert bind_topics({NAME: ExistingTopic(NAME, "new", 4)}, {}) == 1
    cell.refresh_from_db()
    assert Topic.objects.get(name=NAME).topic_id == "new"
    assert cell.version == before + 1


def test_second_run_changes_nothing(cell: Cell):
    found = {NAME: ExistingTopic(NAME, "new", 4)}
    bind_topics(found, {})
    cell.refresh_from_db()
    before = cell.version
    assert bind_topics(found, {}) == 0
    cell.refresh_from_db()
    assert cell.version == before


@pytest.mark.parametrize("found", [{}, {NAME: ExistingTopic(NAME, "new", 3)}], ids=["missing", "fewer partitions"])
def test_nothing_is_bound_if_a_topic_is_not_complete(cell: Cell, found: dict[str, ExistingTopic]):
    other = "penstock.c1.dead.g1"
    Topic.objects.create(cell=cell, purpose="dead", generation=1, name=other, topic_id="old", partitions=1)
    with pytest.raises(TopicMissingOnClusterError, match="needs 4 partitions"):
        bind_topics({other: ExistingTopic(other, "new", 1), **found}, {})
    assert set(Topic.objects.filter(cell=cell).values_list("topic_id", flat=True)) == {"old"}


def bind() -> int:
    return bind_topics({NAME: ExistingTopic(NAME, "new", 4)}, STORED)


def test_observer_reads_what_the_promoted_cluster_stores_where_the_former_one_ended_later(cell: Cell):
    AuditOffset.objects.create(topic=AUDIT_TOPIC, partition=0, next_offset=1_000)
    AuditOffset.objects.create(topic=DEAD, partition=0, next_offset=7)
    AuditOffset.objects.create(topic="penstock.c1.attempts.g1", partition=0, next_offset=3)
    bind()
    rows = dict(AuditOffset.objects.values_list("topic", "next_offset"))
    assert rows == {AUDIT_TOPIC: 990, DEAD: 7, "penstock.c1.attempts.g1": 3}
    # The new lanes have written reports up to 1005 before the Observer starts: it must not begin at 1000.
    assert start_offset(rows[AUDIT_TOPIC], 0, 1_005, repeatable=True) == (990, 0)


def test_second_bind_does_not_let_the_observer_read_again(cell: Cell):
    row = AuditOffset.objects.create(topic=AUDIT_TOPIC, partition=0, next_offset=1_000)
    bind()
    AuditOffset.objects.filter(pk=row.pk).update(next_offset=1_200)
    bind()
    row.refresh_from_db()
    assert row.next_offset == 1_200


def test_what_was_settled_at_lost_offsets_is_not_settled_at_the_new_ones(cell: Cell):
    SettledOffset.objects.create(topic=DEAD, partition=0, offset=45)
    for bucket, offset in enumerate((39, 40, 44)):
        HighOffset.objects.create(pipe_id="pipe_1", bucket=bucket, topic=DEAD, partition=0, offset=offset)
    bind()
    assert SettledOffset.objects.get().offset == 40
    assert sorted(HighOffset.objects.values_list("offset", flat=True)) == [39, 39, 39]


@pytest.mark.parametrize(("model", "topic", "end"), [(DeadLetter, DEAD, 40), (HeldMessage, HELD, 50)])
def test_messages_that_the_promoted_cluster_lacks_are_not_listed(
    cell: Cell, model: type[DeadLetter | HeldMessage], topic: str, end: int
):
    kind, more = ("dead", {"bucket": 1, "revision": 1, "attempts": 1}) if model is DeadLetter else ("held", {})
    now = datetime.now(UTC)
    key = OffsetSetKey("pipe_1", "crm", kind, "", topic, 0, 5)
    add_places([StoredPosition(key, end + at, 5 * 3_600 + 60 * (at + 2)) for at in (-2, -1, 0, 1)])
    add_places([StoredPosition(key._replace(hour=6), end + 2, 6 * 3_600)])
    for at in (-1, 0, 1):
        place = {"topic": topic, "partition": 0, "offset": end + at}
        model.objects.create(
            pipe_id="pipe_1", destination="crm", message_id=f"e{at}", position=at + 2, at=now, **place, **more
        )
    bind()
    assert list(model.objects.values_list("offset", flat=True)) == [end - 1]
    row = OffsetSet.objects.get()
    assert list(BitMap64.deserialize(bytes(row.offsets))) == [end - 2, end - 1]
    assert (row.count, row.marks) == (2, [[0, end - 2], [1, end - 1]])


def test_nothing_is_bound_while_an_observer_of_the_former_cluster_runs(cell: Cell):
    AuditOffset.objects.create(topic=AUDIT_TOPIC, partition=0, next_offset=1_000)
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [lock_name((AUDIT_TOPIC, 0))])
        with pytest.raises(ObserverRunsError):
            bind()
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock_all()")
    finally:
        other.close()
    assert Topic.objects.get(name=NAME).topic_id == "old"
    assert AuditOffset.objects.get().next_offset == 1_000
    assert bind() == 1


class NoReader(AuditReader):
    """Reader of a test that takes no partition."""

    def __init__(self) -> None:
        self.places: set[PartitionKey] = set()
        self.asked: list[str] = []

    def partitions_of(self, topics: Iterable[str]) -> list[PartitionKey]:
        self.asked.extend(topics)
        return []

    def stop(self) -> None:
        self.places.clear()


@pytest.mark.parametrize(
    ("topic_id", "records", "waits"),
    [
        pytest.param("new", MirrorRecords(promotion=Promotion(1, "a:1", stored=STORED)), True, id="promoted"),
        pytest.param("old", MirrorRecords(promotion=Promotion(1, "a:1", stored=STORED)), False, id="bound"),
        pytest.param("new", MirrorRecords(), False, id="a topic was recreated"),
    ],
)
def test_observer_reads_nothing_of_a_promoted_cluster_before_rows_are_bound_to_it(
    cell: Cell, topic_id: str, records: MirrorRecords, *, waits: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(TopicCreator, "find", lambda *_: {NAME: ExistingTopic(NAME, topic_id, 4)})
    monkeypatch.setattr(MirrorCluster, "read_records", lambda _: records)
    reader = NoReader()
    session = ObserverSession(control_settings(), ObserverMetrics(), reader)
    session.discover()
    assert bool(reader.asked) is not waits
