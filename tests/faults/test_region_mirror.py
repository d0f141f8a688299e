"""The mirror between two real Kafka clusters keeps every record at its offset, whatever is killed."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions, NewTopic

from dataplane.ledger.meta import META_HEADER, MessageMeta, encode_meta
from dataplane.metrics import METRICS
from dataplane.mirror.positions import GroupOffset
from dataplane.mirror.records import MirrorProgress
from dataplane.mirror.refusals import SAME_CLUSTER
from dataplane.mirror.topics import content
from dataplane.names import AUDIT_TOPIC, CONTROL_TOPIC, PartitionKey, lane_group, output_topic
from tests.support.broker import Broker
from tests.support.cluster import Cluster
from tests.support.kafka import admin_producer
from tests.support.patience import until
from tests.support.topic_reader import read_topic
from tests.support.two_regions import MirrorProcess, TwoRegions, running_brokers

pytestmark = pytest.mark.timeout(600)
KILLS: Final = 4
RATE: Final = 1_000  # records a second
MOST_GROWTH_BYTES: Final = 250 * 1024 * 1024


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Broker]]:
    with running_brokers(tmp_path_factory.mktemp("regions")) as brokers:
        Cluster(brokers[0].address).make_cluster_topics()
        yield brokers


@pytest.fixture
def regions(brokers: tuple[Broker, Broker], tmp_path: Path) -> Iterator[TwoRegions]:
    regions = TwoRegions(*brokers, tmp_path)
    try:
        yield regions
    finally:
        regions.close()


class Load:
    """Producer of numbered records to the ingest topic of a cell and to its audit, from enter to exit."""

    def __init__(self, cluster: Cluster, rate: int = RATE, size: int = 200) -> None:
        self._topics = (cluster.topics["ingest"].name, cluster.topics["egress"].name)
        self._producer = admin_producer(
            {"bootstrap.servers": cluster.kafka, "enable.idempotence": True, "log_level": 3}
        )
        self._rate, self._pad, self.sent = rate, "x" * size, 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load")

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(30)
        assert self._producer.flush(30) == 0

    def _run(self) -> None:
        while not self._ended.wait(0.02):
            for _ in range(self._rate // 50):
                send_event(self._producer, self._topics[self.sent % 2], self.sent, self._pad)
                self.sent += 1
            self._producer.poll(0)


def send_event(producer: Producer, topic: str, number: int, pad: str = "") -> None:
    meta = MessageMeta(1, f"e{number}", "pipe_rig", 1, "shop", 0, 0, 0)
    headers: list[Any] = [(META_HEADER, encode_meta(meta)), ("ce_id", str(number).encode())]
    key = f"k{number % 50}" if number % 3 else None
    producer.produce(topic, f'{{"n":{number},"pad":"{pad}"}}'.encode(), key, headers=headers)


def by_offset(kafka: str, topic: str, partitions: int) -> dict[tuple[int, int], tuple[Any, ...]]:
    return {(m.partition(), m.offset()): (*content(m), m.timestamp()[1]) for m in read_topic(kafka, topic, partitions)}


def cell(brokers: tuple[Broker, Broker], name: str, partitions: int = 4) -> Cluster:
    cluster = Cluster(brokers[0].address, cell=name, partitions=partitions)
    cluster.make_cell_topics(("process", "transmit"))
    return cluster


def assert_same(brokers: tuple[Broker, Broker], topic: str, partitions: int) -> int:
    """Compare all records of a topic by offset; return their number."""
    active, standby = (by_offset(broker.address, topic, partitions) for broker in brokers)
    assert standby.keys() == active.keys(), "the same offsets, none missing and none twice"
    assert standby == active, "key, value, headers and time at each offset"
    return len(active)


def test_kills_of_the_mirror_leave_every_record_once_at_its_offset(regions: TwoRegions, brokers: tuple[Broker, Broker]):
    cluster = cell(brokers, "killed")
    with Load(cluster) as load:
        for _ in range(KILLS):
            regions.wait_copying()
            time.sleep(0.3)  # the kill hits it in the middle of copying
            regions.mirror.kill()
            regions.mirror.start()
    regions.wait_mirrored(120)
    counts = [assert_same(brokers, cluster.topics[purpose].name, 4) for purpose in ("ingest", "egress")]
    assert sum(counts) == load.sent
    assert load.sent > KILLS * RATE / 2


@pytest.mark.long
def test_mirror_waits_for_a_standby_cluster_that_is_away_and_catches_up_within_its_memory(
    regions: TwoRegions, brokers: tuple[Broker, Broker]
):
    cluster = cell(brokers, "away")
    regions.wait_mirrored()
    mirror = psutil.Process(regions.mirror.pid)
    resident = mirror.memory_info().rss
    brokers[1].kill()
    try:
        with Load(cluster, rate=5_000, size=4_000) as load:
            until(lambda: load.sent > 60_000, "240 MB wait", 120)
            assert mirror.memory_info().rss - resident < MOST_GROWTH_BYTES
    finally:
        brokers[1].start()
    regions.wait_mirrored(180)
    assert mirror.is_running(), "the same process"
    assert mirror.memory_info().rss - resident < MOST_GROWTH_BYTES
    assert sum(assert_same(brokers, cluster.topics[purpose].name, 4) for purpose in ("ingest", "egress")) == load.sent


def test_new_topics_and_partitions_are_mirrored_with_their_settings(
    regions: TwoRegions, brokers: tuple[Broker, Broker]
):
    cluster = cell(brokers, "growing", partitions=2)
    ingest, out = cluster.topics["ingest"].name, output_topic("pipe_growing", "crm")
    regions.wait_mirrored()
    config = {"retention.ms": "3600000", "cleanup.policy": "compact", "max.message.bytes": "70000"}
    cluster.admin.create_topics([NewTopic(out, 3, 1, config=config)])[out].result()
    cluster.admin.create_partitions([NewPartitions(ingest, 5)])[ingest].result()
    until(lambda: len(cluster.admin.list_topics(timeout=5).topics[ingest].partitions) == 5, "five partitions")
    for partition in range(5):
        cluster.producer.produce(ingest, b"after", partition=partition)
    cluster.producer.produce(out, b"row", b"key", partition=2)
    assert cluster.producer.flush(20) == 0
    until(lambda: regions.standby.partitions().get(ingest) == 5, "the partitions are on the standby cluster")
    regions.wait_mirrored()
    assert assert_same(brokers, ingest, 5) == 5
    assert [m.value() for m in read_topic(brokers[1].address, out, 3)] == [b"row"]
    assert regions.standby.layouts()[out] == regions.active.layouts()[out]
    assert regions.standby.layouts()[out].config == config


@pytest.mark.long
def test_records_deleted_before_the_mirror_began_do_not_shift_the_offsets(
    regions: TwoRegions, brokers: tuple[Broker, Broker]
):
    regions.mirror.stop()
    cluster = cell(brokers, "older", partitions=1)
    ingest = cluster.topics["ingest"].name
    for number in range(500):
        send_event(cluster.producer, ingest, number)
    assert cluster.producer.flush(20) == 0
    regions.active.delete_before({(ingest, 0): 450})
    regions.mirror.start()
    regions.wait_mirrored()
    assert bounds(regions, (ingest, 0)) == (450, 500)
    assert assert_same(brokers, ingest, 1) == 50


def bounds(regions: TwoRegions, place: PartitionKey) -> tuple[int, int]:
    return regions.standby.begins([place])[place], regions.standby.ends([place])[place]


def test_committed_offsets_follow_only_after_the_records_below_them(
    regions: TwoRegions, brokers: tuple[Broker, Broker]
):
    cluster = cell(brokers, "committed", partitions=1)
    ingest, group = cluster.topics["ingest"].name, lane_group("committed", "process")
    for number in range(100):
        send_event(cluster.producer, ingest, number)
    assert cluster.producer.flush(20) == 0
    regions.active.commit(group, {(ingest, 0): GroupOffset(60, "read")})
    until(lambda: ingest in regions.standby.partitions(), "the topic is on the standby cluster")

    def committed() -> GroupOffset:
        return regions.standby.committed(group, [(ingest, 0)])[ingest, 0]

    until(lambda: committed() == (60, "read"), "the offset is committed on the standby cluster", 30, seen=committed)
    until(lambda: regions.progress().checkpoint_us, "the checkpoint is reported")
    regions.active.commit(group, {(ingest, 0): GroupOffset(100)})
    until(lambda: committed() == (100, ""), "and the next one", 30, seen=committed)


def test_states_by_key_are_mirrored_in_order(regions: TwoRegions, brokers: tuple[Broker, Broker]):
    cluster = Cluster(brokers[0].address, cell="keyed")
    cluster.topics = {}
    for _ in range(3):
        cluster.publish_cell()
    regions.wait_mirrored()
    newest = [{m.key(): m.value() for m in read_topic(one.address, CONTROL_TOPIC, 1)} for one in brokers]
    assert newest[0] == newest[1]
    assert newest[0]


@pytest.mark.long
def test_states_by_key_are_copied_again_to_a_topic_that_was_created_anew(
    regions: TwoRegions, brokers: tuple[Broker, Broker]
):
    cluster = Cluster(brokers[0].address, cell="keyed-again")
    cluster.topics = {}
    cluster.publish_cell()
    regions.wait_mirrored()
    regions.mirror.stop()
    regions.standby.delete([CONTROL_TOPIC])
    regions.mirror.start()

    def newest() -> list[dict[Any, Any]]:
        return [{m.key(): m.value() for m in read_topic(one.address, CONTROL_TOPIC, 1)} for one in brokers]

    until(lambda: CONTROL_TOPIC in regions.standby.partitions(), "the topic is created again")
    until(lambda: newest()[0] == newest()[1], "all states are there", 30, seen=newest)
    assert newest()[0]


@pytest.mark.long
def test_offsets_of_a_group_return_with_the_copy_of_a_deleted_topic(
    regions: TwoRegions, brokers: tuple[Broker, Broker]
):
    cluster = cell(brokers, "repaired", partitions=1)
    ingest, group = cluster.topics["ingest"].name, lane_group("repaired", "process")
    for number in range(100):
        send_event(cluster.producer, ingest, number)
    assert cluster.producer.flush(20) == 0
    regions.active.commit(group, {(ingest, 0): GroupOffset(60)})

    def committed() -> int:
        return regions.standby.committed(group, [(ingest, 0)])[ingest, 0].offset

    until(lambda: ingest in regions.standby.partitions(), "the topic is on the standby cluster")
    until(lambda: committed() == 60, "the offset is committed on the standby cluster", 30, seen=committed)
    regions.standby.delete([ingest])
    send_event(cluster.producer, ingest, 100)  # which finds no topic: a new session creates it
    assert cluster.producer.flush(20) == 0
    until(lambda: regions.standby.partitions().get(ingest), "the topic is created again", 60)
    until(lambda: committed() == 60, "its offset is there again", 60, seen=committed)


def test_one_cluster_under_two_names_is_not_mirrored_into_itself(brokers: tuple[Broker, Broker], tmp_path: Path):
    cluster = cell(brokers, "itself", partitions=1)
    ingest = cluster.topics["ingest"].name
    for number in range(60):
        send_event(cluster.producer, ingest, number)
    assert cluster.producer.flush(20) == 0
    log, address = tmp_path / "itself.log", brokers[0].address
    itself = MirrorProcess(address, address.replace("127.0.0.1", "localhost"), log)
    try:
        until(lambda: SAME_CLUSTER in log.read_text(), "the mirror says so", seen=log.read_text)
        time.sleep(2)
        assert len(by_offset(address, ingest, 1)) == 60
    finally:
        itself.kill()


def test_mirror_serves_exactly_its_listed_metrics(regions: TwoRegions):
    wanted = {metric.name for metric in METRICS if metric.part in ("every process", "mirror")}
    regions.wait_mirrored()
    until(lambda: wanted <= regions.mirror.served(), "every metric is served", seen=regions.mirror.served)
    assert {name for name in regions.mirror.served() - wanted if not name.endswith("_created")} == set()


def test_progress_of_thousands_of_topics_fits_into_a_record(regions: TwoRegions):
    regions.wait_mirrored()
    stored = {f"penstock.out.pipe_{number:06}.{'d' * 40}": {0: number} for number in range(30_000)}
    value = msgspec.json.encode(MirrorProgress("copying", "a:1", 1, stored=stored))
    assert len(value) > 2_000_000
    regions.standby.store(b"large", value)


def test_foreign_record_on_the_standby_cluster_stops_the_mirror_with_the_reason(
    regions: TwoRegions, brokers: tuple[Broker, Broker]
):
    regions.wait_mirrored()
    producer = admin_producer({"bootstrap.servers": brokers[1].address, "log_level": 3})
    producer.produce(AUDIT_TOPIC, b"not of the active cluster", partition=0)
    assert producer.flush(20) == 0
    active = admin_producer({"bootstrap.servers": brokers[0].address, "log_level": 3})
    active.produce(AUDIT_TOPIC, b"of the active cluster", partition=0)
    assert active.flush(20) == 0
    try:
        # On a busy machine, the mirror first reports that another process writes to the standby cluster.
        until(lambda: AUDIT_TOPIC in regions.progress().diverged, "the problem is reported", 60, seen=regions.progress)
        assert regions.progress().state == "waiting"
        assert AUDIT_TOPIC in regions.progress().error
        regions.mirror.kill()
        regions.mirror.start()
        before_us = regions.progress().at_us
        until(lambda: regions.progress().at_us > before_us, "the new process reports")
        assert AUDIT_TOPIC in regions.progress().diverged, "a restart does not forget it"
    finally:  # as an operator repairs it
        regions.standby.delete([AUDIT_TOPIC])
    until(lambda: regions.progress().state == "copying", "it copies the topic again", 60, seen=regions.progress)
    assert regions.progress().diverged == ""
    regions.wait_mirrored()
    assert assert_same(brokers, AUDIT_TOPIC, 4)
