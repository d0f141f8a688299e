"""A standby cluster that accepts connections and never answers: real clients wait for a limited time, also at the end.

The listener stands for brokers that are stopped or cut off. The active cluster is faked.
"""

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest
from confluent_kafka import KafkaError, KafkaException

from dataplane.mirror import clusters, lease, topics
from dataplane.mirror.__main__ import RegionMirror
from dataplane.mirror.clusters import ClusterAddress, MirrorAddresses, MirrorCluster
from dataplane.mirror.lease import NO_LEASE, MirrorLease
from dataplane.mirror.positions import MirrorError
from dataplane.mirror.records import PROGRESS_KEY, MirrorRecords
from dataplane.mirror.selection import TopicLayout
from dataplane.mirror.topics import fill_up
from dataplane.mirror.watcher import MirrorWatcher
from dataplane.names import PartitionKey, cell_topic

INGEST: Final = cell_topic("c1", "ingest", 1)
WAIT_S: Final = 0.3  # for an answer, in place of seconds
SOON_S: Final = 10.0  # several of them, on a busy machine
MANY: Final = 50_000_000  # fillers: far more than the producer's queue holds


@pytest.fixture
def standby() -> Iterator[ClusterAddress]:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield ClusterAddress(f"127.0.0.1:{listener.getsockname()[1]}", {})


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "REQUEST_S", WAIT_S)
    monkeypatch.setattr(topics, "SETTLE_S", 0.0)


class GivenLease(MirrorLease):
    """Lease that is valid, and that nobody renews."""

    @property
    def left_s(self) -> float:
        return 10.0

    def start(self) -> None:
        """Start no thread."""


class ActiveAnswers:
    """Answers about both clusters, but for what is stored: the active one has deleted the first MANY records."""

    def __init__(self, standby: ClusterAddress, monkeypatch: pytest.MonkeyPatch) -> None:
        self._standby = standby
        self.commits: list[str] = []
        self.filling = threading.Event()
        for name in ("id", "layouts", "partitions", "begins", "ends", "read_records", "committed", "commit", "create"):
            answer = getattr(self, name)
            monkeypatch.setattr(MirrorCluster, name, lambda *args, answer=answer: answer(*args))
        producer = MirrorCluster.producer

        def note(cluster: MirrorCluster, name: str) -> Any:
            self.filling.set()
            return producer(cluster, name)

        monkeypatch.setattr(MirrorCluster, "producer", note)

    def id(self, cluster: MirrorCluster) -> str:
        return cluster.address.servers

    def layouts(self, _cluster: MirrorCluster) -> dict[str, TopicLayout]:
        return {INGEST: TopicLayout(INGEST, 1, 1, {})}

    def partitions(self, _cluster: MirrorCluster) -> dict[str, int]:
        return {INGEST: 1}

    def begins(self, _cluster: MirrorCluster, places: Any) -> dict[PartitionKey, int]:
        return dict.fromkeys(places, MANY)

    def ends(self, cluster: MirrorCluster, places: Any) -> dict[PartitionKey, int]:
        return dict.fromkeys(places, 0 if cluster.address == self._standby else MANY)

    def read_records(self, _cluster: MirrorCluster) -> MirrorRecords:
        return MirrorRecords()

    def committed(self, _cluster: MirrorCluster, _group: str, _places: Any) -> dict[PartitionKey, Any]:
        return {}

    def commit(self, _cluster: MirrorCluster, group: str, _offsets: Any) -> None:
        self.commits.append(group)

    def create(self, _cluster: MirrorCluster, _layouts: Any) -> None:
        pass


def addresses_of(standby: ClusterAddress) -> MirrorAddresses:
    return MirrorAddresses(ClusterAddress("127.0.0.1:1", {}), standby)


def took_s(began_s: float) -> float:
    return time.monotonic() - began_s


def test_record_that_is_not_confirmed_in_time_is_not_stored(standby: ClusterAddress, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(clusters, "REQUEST_S", WAIT_S - 1)  # `store` waits one second more for the report
    cluster, began_s = MirrorCluster(standby), time.monotonic()
    try:
        with pytest.raises(KafkaException) as raised:
            cluster.store(PROGRESS_KEY, b"{}")
    finally:
        cluster.close()
    assert raised.value.args[0].code() == KafkaError._TIMED_OUT
    assert took_s(began_s) < SOON_S


def test_mirror_has_no_lease_and_the_lease_ends_with_it(standby: ClusterAddress, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lease, "RENEW_S", 0.05)
    silent = MirrorLease(standby)
    silent.start()
    with pytest.raises(MirrorError, match=NO_LEASE):
        silent.wait(threading.Event(), limit_s=2 * WAIT_S)
    began_s = time.monotonic()
    silent.close()
    assert took_s(began_s) < SOON_S
    silent.check()  # an answer that does not come is no crash


@pytest.mark.parametrize("count", [10, MANY], ids=["waiting for reports", "a full queue"])
def test_fill_up_ends_when_the_mirror_is_stopped(standby: ClusterAddress, count: int):
    """The lease is valid, and the records wait for an answer: only the stop ends it."""
    ended = threading.Event()
    mirror = RegionMirror(addresses_of(standby), ended)
    mirror._lease = GivenLease(standby)
    began_s = time.monotonic()
    timer = threading.Timer(WAIT_S, ended.set)
    timer.start()
    with pytest.raises(MirrorError, match="the mirror ends"):
        fill_up(MirrorCluster(standby), {(INGEST, 0): count}, mirror._require)
    assert WAIT_S <= took_s(began_s) < SOON_S
    timer.join()


def test_fill_up_ends_without_the_lease(standby: ClusterAddress):
    mirror = RegionMirror(addresses_of(standby), threading.Event())
    with pytest.raises(MirrorError, match=NO_LEASE):
        fill_up(MirrorCluster(standby), {(INGEST, 0): MANY}, mirror._require)


def test_stop_ends_a_mirror_that_fills_up(standby: ClusterAddress, monkeypatch: pytest.MonkeyPatch):
    """As SIGTERM does: it sets the event. The last report cannot be stored either, and does not keep the process."""
    answers, ended = ActiveAnswers(standby, monkeypatch), threading.Event()
    mirror = RegionMirror(addresses_of(standby), ended)
    mirror._lease = mirror.watcher._lease = GivenLease(standby)
    thread = threading.Thread(target=mirror.run, daemon=True)
    thread.start()
    assert answers.filling.wait(SOON_S)
    time.sleep(WAIT_S)
    assert thread.is_alive()
    ended.set()
    thread.join(2 * SOON_S)
    assert not thread.is_alive()
    assert mirror.watcher.problem == "the mirror ends"
    assert answers.commits == []


def test_watcher_reports_that_the_mirror_fails_and_commits_nothing(
    standby: ClusterAddress, monkeypatch: pytest.MonkeyPatch
):
    answers = ActiveAnswers(standby, monkeypatch)
    watcher = MirrorWatcher(addresses_of(standby), GivenLease(standby))
    watcher.problem = ""
    watcher.resume(None)
    until_s = time.monotonic() + SOON_S
    while not watcher._error and time.monotonic() < until_s:
        time.sleep(0.01)
    failing = {reading.name: reading.value for reading in watcher.readings()}
    began_s = time.monotonic()
    watcher.close()
    assert took_s(began_s) < SOON_S
    assert failing["penstock_mirror_failing"] == 1
    assert answers.commits == []
