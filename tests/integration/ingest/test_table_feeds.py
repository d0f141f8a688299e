"""Source of type table on a real broker: kills of its reader leave no gap, and repeats keep their id."""

import json
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import TopicPartition

from dataplane.ingest.table_feed import TableFeedKey
from dataplane.ledger.meta import read_meta
from dataplane.names import LOOKUP_TOPIC
from dataplane.tables.lookups import VERSIONS_PER_US, encode_row, row_key
from tests.support.cluster import PIPE, Cluster
from tests.support.ingest_replica import Replica, feeding_cluster
from tests.support.kafka import admin_consumer, admin_producer
from tests.support.patience import until
from tests.support.topic_reader import read_topic

TABLE = "tab_users"
KILLS = 4
COMMON = 20  # rows that change again and again


class Seen(NamedTuple):
    """A change on the ingest topic, in the order of its partition."""

    id: str
    record_key: bytes
    key: str
    version: int
    row: Any


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    sources = {
        "all": {"type": "table", "table": "users", "from": "snapshot"},
        "later": {"type": "table", "table": "users", "prefix": "new-"},
    }
    with feeding_cluster(tmp_path, "orders.eu", {"shop": {}} | sources, partitions=2) as made:
        yield made


class Writer:
    """Writes rows as a destination of type table does, and remembers the version of each."""

    def __init__(self, cluster: Cluster) -> None:
        self._producer = admin_producer({"bootstrap.servers": cluster.kafka, "acks": "all"})
        self.last: dict[str, tuple[int, Any]] = {}
        self._count = 0

    def write(self, key: str, row: Any) -> None:
        self._count += 1
        version = time.time_ns() // 1_000 * VERSIONS_PER_US + self._count % VERSIONS_PER_US
        value = None if row is None else json.dumps(row).encode()
        self._producer.produce(LOOKUP_TOPIC, encode_row(version, value), row_key(TABLE, key), partition=0)
        self._producer.poll(0)
        self.last[key] = version, row

    def repeat(self, key: str) -> None:
        """Write the last version of a row again, as a retry does."""
        version, row = self.last[key]
        value = None if row is None else json.dumps(row).encode()
        self._producer.produce(LOOKUP_TOPIC, encode_row(version, value), row_key(TABLE, key), partition=0)

    def flush(self) -> None:
        assert self._producer.flush(20) == 0


def ingested(cluster: Cluster, source: str) -> list[Seen]:
    """Return the changes that a source has brought, in order within each partition."""
    found = []
    for message in read_topic(cluster.kafka, cluster.topics["ingest"].name, 2):
        meta, body = read_meta(message.headers()), json.loads(message.value())
        if meta.source == source:
            found.append(Seen(meta.id, message.key(), body["key"], int(body["version"]), body["row"]))
    return found


def has_begun(cluster: Cluster, source: str, prefix: str) -> bool:
    """Return True if the first position of a source is committed."""
    group_parts = TableFeedKey(PIPE, source, "", "users", "now", prefix).group_parts
    group = ".".join(["penstock", PIPE, source, *group_parts])
    consumer = admin_consumer({"bootstrap.servers": cluster.kafka, "group.id": group, "log_level": 3})
    (known,) = consumer.committed([TopicPartition(LOOKUP_TOPIC, 0)], timeout=10)
    consumer.close()
    return bool(known.offset >= 0)


def rows_of(found: list[Seen]) -> dict[str, tuple[int, Any]]:
    """Return the last version and row of each key."""
    return {one.key: (one.version, one.row) for one in found}


def wait_for_more(cluster: Cluster) -> None:
    before = len(ingested(cluster, "all"))
    until(lambda: len(ingested(cluster, "all")) > before, "more after a kill", 90)


@pytest.mark.timeout(900)
def test_killed_readers_leave_no_gap_and_repeats_keep_their_ids(cluster: Cluster, tmp_path: Path):
    writer = Writer(cluster)
    for number in range(500):
        writer.write(f"old-{number}", {"n": number})
    writer.write("old-removed", {"n": 0})
    writer.write("old-removed", None)
    writer.flush()
    cluster.publish_rows("users", {})
    replica = Replica(cluster, tmp_path)
    until(lambda: len(ingested(cluster, "all")) > 100, "rows of the snapshot", 90)
    until(lambda: has_begun(cluster, "later", "new-"), "the source of later changes", 90)
    ended = threading.Event()

    def write() -> None:
        for number in range(100_000):
            writer.write(f"new-{number}", {"n": number})
            writer.write(f"new-common-{random.randrange(COMMON)}", None if number % 7 == 0 else {"n": number})
            if ended.wait(0.02):
                return

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(KILLS):
            time.sleep(random.uniform(1, 4))
            replica.kill()
            replica.start()
            wait_for_more(cluster)
    finally:
        ended.set()
        thread.join()
    writer.flush()
    expected = {key: last for key, last in writer.last.items() if key != "old-removed"}
    until(lambda: rows_of(ingested(cluster, "all")) == expected, "the last version of every row", 90)
    found = ingested(cluster, "all")
    versions = defaultdict[str, list[int]](list)
    for one in found:
        versions[one.key].append(one.version)
        assert one.record_key == f"{PIPE}\0{one.key}".encode()
    assert all(of_key == sorted(of_key) for of_key in versions.values()), "changes of a row keep their order"
    assert len({one.id for one in found}) == len({(one.key, one.version) for one in found})
    assert len(found) - len({one.id for one in found}) <= (KILLS + 1) * 500, "only what was in flight is repeated"
    later = {key: last for key, last in expected.items() if key.startswith("new-")}
    until(lambda: rows_of(ingested(cluster, "later")) == later, "the later changes with the prefix", 90)
    assert {one.key for one in ingested(cluster, "later")} == set(later)

    replica.close()
    before = len(ingested(cluster, "all"))
    replica.start()
    writer.write("old-1", None)
    writer.flush()
    until(lambda: len(ingested(cluster, "all")) > before, "a removal", 60)
    time.sleep(2)
    assert len(ingested(cluster, "all")) == before + 1, "an orderly shutdown repeats nothing"
    assert rows_of(ingested(cluster, "all"))["old-1"][1] is None
    writer.repeat("new-1")
    writer.write("old-2", {"n": -1})
    writer.flush()
    until(lambda: rows_of(ingested(cluster, "all"))["old-2"][1] == {"n": -1}, "the change after a repeat", 60)
    replica.close()


@pytest.mark.timeout(900)
def test_replica_of_another_host_continues_where_a_killed_one_stopped(cluster: Cluster, tmp_path: Path):
    writer = Writer(cluster)
    writer.write("a", {"n": 1})
    writer.flush()
    cluster.publish_rows("users", {})
    first = Replica(cluster, tmp_path)
    until(lambda: len(ingested(cluster, "all")) == 1, "the row of the snapshot", 90)
    (other_host := tmp_path / "other").mkdir()
    second = Replica(cluster, other_host, "ingest-2")
    writer.write("b", {"n": 2})
    writer.flush()
    until(lambda: len(ingested(cluster, "all")) == 2, "a change", 60)
    first.kill()
    writer.write("a", None)
    writer.write("c", {"n": 3})
    writer.flush()
    until(lambda: len(rows_of(ingested(cluster, "all"))) == 3, "changes after the kill", 60)
    found = ingested(cluster, "all")
    assert {key: row for key, (_, row) in rows_of(found).items()} == {"a": None, "b": {"n": 2}, "c": {"n": 3}}
    assert len(found) == 4, "nothing was in flight"
    second.close()
