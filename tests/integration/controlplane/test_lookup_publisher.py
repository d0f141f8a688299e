"""Rows of look-up tables from the API's services to the topic and a host's store, over a real broker."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from controlplane.lookups import publish
from controlplane.lookups.publish import LookupPublisher
from controlplane.settings import control_settings
from controlplane.topics import TopicCreator, cluster_plans
from dataplane.names import LOOKUP_TOPIC
from dataplane.runtime.lookup_replicator import LookupReplicator
from dataplane.tables.lookup_store import LookupStore
from localbox.testing import Box, box_of
from mgmt.lookups.row_files import NewRow
from mgmt.models import LookupRow, LookupTable, User
from mgmt.services import create_lookup_table, create_tenant, delete_lookup_table, put_row, remove_row, upload_rows
from tests.support.kafka import admin_consumer, broker_admin
from tests.support.patience import Patience

pytestmark = pytest.mark.django_db(transaction=True)
SEEN_S = 5.0


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    with box_of("kafka") as box:
        yield box


@pytest.fixture
def broker(box: Box) -> str:
    """A broker for this module only, because a test deletes its topic."""
    address = box.env["PENSTOCK_KAFKA"]
    make_topic(address)
    return address


@pytest.fixture
def store(broker: str, tmp_path: Path) -> Iterator[LookupStore]:
    """Look-up store of a host that replicates the topic."""
    store = LookupStore(tmp_path)
    keeper = LookupReplicator(broker, store, tmp_path)
    keeper.start()
    yield store
    keeper.close()
    store.close()


@pytest.fixture
def table() -> LookupTable:
    tenant = create_tenant(name="Alice's", owner=User.objects.create_user("alice"))
    return create_lookup_table(tenant=tenant, name="shops")


def make_topic(kafka: str) -> None:
    TopicCreator(kafka).ensure(plan for plan in cluster_plans(control_settings().topics) if plan.name == LOOKUP_TOPIC)


def seen(store: LookupStore, table: LookupTable, key: str) -> object:
    pinned = store.pin()
    try:
        record = pinned.table(table.tenant_id, table.name)
        return None if record is None or record.state == "removed" else pinned.row(record.table, key)
    finally:
        pinned.close()


def wait_for(store: LookupStore, table: LookupTable, key: str, value: object, limit_s: float = SEEN_S) -> None:
    patience = Patience(limit_s)
    while seen(store, table, key) != value:
        assert not patience.is_over, f"{key} is not {value} after {limit_s} s"
        time.sleep(0.02)


def rows(*keys: str) -> list[NewRow]:
    return [NewRow(n, key, f'{{"n":{n}}}') for n, key in enumerate(keys, 1)]


def end_of_topic(kafka: str) -> int:
    consumer = admin_consumer({"bootstrap.servers": kafka, "group.id": "test"})
    high: int = consumer.get_watermark_offsets(TopicPartition(LOOKUP_TOPIC, 0), timeout=10)[1]
    consumer.close()
    return high


def test_hosts_see_stored_rows_and_drop_removed_ones(broker: str, store: LookupStore, table: LookupTable):
    publisher = LookupPublisher(broker)
    upload_rows(table=table, rows=rows("a", "b"), mode="merge")
    assert publisher.tick() == "2 rows"
    wait_for(store, table, "b", {"n": 2}, 20)  # the replicator has to start first
    put_row(table=table, row=NewRow(1, "a", '{"n":7}'))
    publisher.tick()
    wait_for(store, table, "a", {"n": 7})
    remove_row(table=table, key="b")
    publisher.tick()
    wait_for(store, table, "b", None)
    end = end_of_topic(broker)
    assert publisher.tick() == "nothing to do"
    assert end_of_topic(broker) == end

    delete_lookup_table(table=table)
    publisher.tick()
    wait_for(store, table, "a", None)
    assert not LookupRow.objects.filter(table=table).exists()


def test_large_table_is_published_and_cleared_over_several_ticks(
    broker: str, store: LookupStore, table: LookupTable, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(publish, "CHUNK", 100)
    monkeypatch.setattr(publish, "TICK_S", 0.0)
    publisher = LookupPublisher(broker)
    upload_rows(table=table, rows=rows(*(f"k{n}" for n in range(1_050))), mode="merge")
    told = [publisher.tick() for _ in range(3)]
    assert LookupTable.objects.get().published_version == 0
    assert seen(store, table, "k0") is None  # the table is published after its rows
    monkeypatch.setattr(publish, "TICK_S", 60.0)
    publisher.tick()
    wait_for(store, table, "k1049", {"n": 1_050}, 20)
    assert told == ["100 rows"] * 3
    assert LookupTable.objects.get().progress == "live"

    delete_lookup_table(table=table)
    monkeypatch.setattr(publish, "TICK_S", 0.0)
    assert publisher.tick() == "100 rows"
    wait_for(store, table, "k1049", None)  # at once, although rows are left to clear
    assert LookupRow.objects.filter(table=table).count() == 950
    monkeypatch.setattr(publish, "TICK_S", 60.0)
    assert publisher.tick() == "950 rows"
    assert publisher.tick() == "nothing to do"


def test_publisher_that_died_before_saving_its_progress_resends_and_reverts_no_row(
    broker: str, store: LookupStore, table: LookupTable
):
    upload_rows(table=table, rows=rows("a"), mode="merge")
    LookupPublisher(broker).tick()
    put_row(table=table, row=NewRow(1, "a", '{"n":7}'))
    LookupTable.objects.update(sent_version=0, published_version=0)
    assert LookupPublisher(broker).tick() == "1 rows"
    wait_for(store, table, "a", {"n": 7}, 20)


def test_recreated_topic_gets_all_rows_again(broker: str, tmp_path: Path, table: LookupTable):
    publisher = LookupPublisher(broker)
    upload_rows(table=table, rows=rows("a", "b"), mode="merge")
    publisher.tick()
    admin = broker_admin(broker, log_level=0)
    admin.delete_topics([LOOKUP_TOPIC], operation_timeout=10)[LOOKUP_TOPIC].result()
    patience = Patience(20)
    while TopicCreator(broker).find([LOOKUP_TOPIC]):
        assert not patience.is_over
        time.sleep(0.1)
    make_topic(broker)
    assert LookupPublisher(broker).tick() == "2 rows"
    fresh = LookupStore(tmp_path)
    keeper = LookupReplicator(broker, fresh, tmp_path)
    keeper.start()
    try:
        wait_for(fresh, table, "b", {"n": 2}, 20)
    finally:
        keeper.close()
        fresh.close()
