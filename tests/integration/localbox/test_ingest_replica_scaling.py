"""Ingest replicas are added and removed by the supervisor under load: every ACK is in the ledger."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Self

import psutil
import pytest

from controlplane.compute.files import ComputeFiles
from localbox.supervisor import living
from localbox.testing import Box, box_of
from localbox.testing_kafka import role_env
from tests.support.cluster import Cluster, key_of
from tests.support.ledger_checks import AuditReader, Whole
from tests.support.patience import until
from tests.support.sender import Sender

KEY = key_of("replicas")


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
        files.request_replicas(3)
        third = box.wait_ready("ingest-3")

        def third_has_senders() -> bool:
            load.begin(40.0)  # the kernel chooses the replica of a connection
            time.sleep(0.5)
            return has_senders(third, port)

        until(third_has_senders, "the third has load, too", 30)
        files.request_replicas(2)
        until(lambda: "ingest-3" not in programs(box), "the third has drained and gone", 40)
        before = len(load.positions)
        until(lambda: len(load.positions) > before + 200, "the others take events", 30)
    refusals = [refusal for sender in load.senders for refusal in sender.refusals]
    assert refusals == [], "neither a new nor a draining replica refuses a request"

    def told() -> bool:
        books.refresh()
        return load.positions <= Whole(books.accounts("replicas")).acked

    def missing() -> str:
        return f"{len(load.positions - Whole(books.accounts('replicas')).acked)} of {len(load.positions)} are missing"

    until(told, "every ACK is in the books", 60, seen=missing)
