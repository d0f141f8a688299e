"""Ingest replicas are added, removed and given releases by the supervisor under load: every ACK is in the ledger."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Self

import httpx
import psutil
import pytest

from controlplane.compute.files import ComputeFiles, DesiredReplicas
from controlplane.compute.releases import ReleaseStore
from localbox.settings import ROOT
from localbox.supervisor import living
from localbox.testing import Box, box_of
from localbox.testing_kafka import role_env
from tests.support.changed_builds import changed, replacing
from tests.support.cluster import Cluster, key_of
from tests.support.ledger_checks import AuditReader, Whole
from tests.support.patience import until
from tests.support.sender import Sender

KEY = key_of("replicas")
ALIVE, ALIVE_2 = '{"status":"alive"}', '{"status":"alive","build":2}'


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with box_of("kafka") as services:
        made = Cluster(services.env["PENSTOCK_KAFKA"], partitions=4)
        made.make_topics()
        made.publish_cell()
        made.add_pipe("replicas", KEY, {"crm": {"url": "http://127.0.0.1:1/"}})
        yield made


@pytest.fixture
def box(cluster: Cluster) -> Iterator[Box]:
    with box_of("ingest-1", "ingest-2", env={"PENSTOCK_KAFKA": cluster.kafka} | role_env("ingest")) as running:
        yield running


@pytest.fixture
def books(cluster: Cluster) -> Iterator[AuditReader]:
    with closing(AuditReader(cluster.kafka, cluster.topics)) as made:
        yield made


def programs(box: Box) -> list[str]:
    snapshot = living(box.settings)
    return [entry.name for entry in snapshot.programs] if snapshot else []


class Load:
    """Senders, as many as are begun, until the block ends."""

    def __init__(self, port: int) -> None:
        self._port, self._stack = port, ExitStack()
        self.senders: list[Sender] = []

    def __enter__(self) -> Self:
        self.begin(200.0)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def begin(self, rate: float) -> None:
        """Start one more sender, with connections of its own."""
        self.senders.append(self._stack.enter_context(Sender(self._port, KEY, rate)))

    def goes_on(self) -> None:
        """Wait until the replicas have taken 200 more events."""
        before = len(self.positions)
        until(lambda: len(self.positions) > before + 200, "events are taken", 30)

    def livez(self) -> set[str]:
        """Return the responses of /livez to 20 connections: the kernel chooses the replica of each."""
        return {httpx.get(f"http://127.0.0.1:{self._port}/livez").text for _ in range(20)}

    @property
    def refusals(self) -> list[object]:
        """Return the refusals of all senders."""
        return [refusal for sender in self.senders for refusal in sender.refusals]

    @property
    def positions(self) -> set[str]:
        """Return the positions of the ACKed events."""
        return set().union(*(sender.positions for sender in self.senders))


def has_senders(pid: int, port: int) -> bool:
    """Return True if a sender of this test is connected to the replica of that process."""
    senders = {
        one.laddr.port for one in psutil.Process().net_connections("tcp") if one.raddr and one.raddr.port == port
    }
    return any(one.raddr and one.raddr.port in senders for one in psutil.Process(pid).net_connections("tcp"))


def test_replica_is_added_and_removed_again_under_load(box: Box, books: AuditReader):
    files, port = ComputeFiles(box.var), box.settings.ports["PENSTOCK_INGEST_PORT"]
    with Load(port) as load:
        files.request_replicas(DesiredReplicas(3))
        third = box.wait_ready("ingest-3")

        def third_has_senders() -> bool:
            load.begin(40.0)  # the kernel chooses the replica of a connection
            time.sleep(0.5)
            return has_senders(third, port)

        until(third_has_senders, "the third has load, too", 30)
        files.request_replicas(DesiredReplicas(2))
        until(lambda: "ingest-3" not in programs(box), "the third has drained and gone", 40)
        load.goes_on()
    assert load.refusals == [], "neither a new nor a draining replica refuses a request"
    every_ack_is_reported(books, load)


def test_replicas_get_a_release_one_by_one_under_load(box: Box, books: AuditReader, tmp_path: Path):
    files, store = ComputeFiles(box.var), ReleaseStore(box.var)
    newer = changed(tmp_path, "ingest/app.py", replacing('"alive"', '"alive","build":2'))
    old, new = store.pack(ROOT), store.pack(newer)
    first, second = box.pid("ingest-1"), box.pid("ingest-2")
    with Load(box.settings.ports["PENSTOCK_INGEST_PORT"]) as load:
        files.request_replicas(DesiredReplicas(2, old, canary=new, installed=old))
        canary = box.wait_ready("ingest-1", not_pid=first)
        assert (release_of(canary), release_of(second)) == (new, old)
        until(lambda: load.livez() == {ALIVE, ALIVE_2}, "both releases serve", 30)
        assert box.pid("ingest-2") == second, "only the canary gets the release"
        files.request_replicas(DesiredReplicas(2, new, installed=old))
        assert release_of(box.wait_ready("ingest-2", not_pid=second)) == new
        assert (box.pid("ingest-1"), load.livez()) == (canary, {ALIVE_2})
        load.goes_on()
    assert load.refusals == [], "a replica that is replaced finishes its requests, and the other takes new ones"
    every_ack_is_reported(books, load)


def test_release_that_does_not_start_leaves_the_other_replica_serving(box: Box, books: AuditReader, tmp_path: Path):
    files, store = ComputeFiles(box.var), ReleaseStore(box.var)
    old = store.pack(ROOT)
    begins, exits = "def main() -> int:\n", "def main() -> int:\n    return 3\n"
    bad = store.pack(changed(tmp_path, "ingest/__main__.py", replacing(begins, exits)))
    first, second = box.pid("ingest-1"), box.pid("ingest-2")
    with Load(box.settings.ports["PENSTOCK_INGEST_PORT"]) as load:
        files.request_replicas(DesiredReplicas(2, bad, installed=old))
        until(lambda: box.entry("ingest-1").state == "backoff", "the first replica fails", 60)
        load.goes_on()
        assert box.pid("ingest-2") == second, "no second replica is replaced while the first one fails"
        files.request_replicas(DesiredReplicas(2, old, installed=old))
        box.wait_ready("ingest-1", not_pid=first)
        assert box.pid("ingest-2") == second, "it has the right release"
    assert load.refusals == []
    every_ack_is_reported(books, load)


def release_of(pid: int) -> str:
    return psutil.Process(pid).environ()["PENSTOCK_RELEASE"]


def every_ack_is_reported(books: AuditReader, load: Load) -> None:
    def told() -> bool:
        books.refresh()
        return load.positions <= Whole(books.accounts("replicas")).acked

    def missing() -> str:
        return f"{len(load.positions - Whole(books.accounts('replicas')).acked)} of {len(load.positions)} are missing"

    until(told, "every ACK is in the books", 60, seen=missing)
