"""Ingest replicas are added and removed by the supervisor under load: every ACK is in the ledger."""

from collections.abc import Iterator

import pytest

from controlplane.compute.files import ComputeFiles
from localbox.supervisor import living
from localbox.testing import Box, box_of
from tests.support.cluster import Cluster, key_of
from tests.support.ledger_checks import AuditReader, Whole
from tests.support.plane import until
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
    with box_of("ingest-1", "ingest-2", env={"PENSTOCK_KAFKA": cluster.kafka}) as running:
        yield running


def programs(box: Box) -> list[str]:
    snapshot = living(box.settings)
    return [entry.name for entry in snapshot.programs] if snapshot else []


def test_replica_is_added_and_removed_again_under_load(box: Box, cluster: Cluster):
    files, books = ComputeFiles(box.var), AuditReader(cluster.kafka, cluster.topics)
    with Sender(box.settings.ports["PENSTOCK_INGEST_PORT"], KEY, 200.0) as sender:
        files.request_replicas(3)
        box.wait_ready("ingest-3")
        files.request_replicas(2)
        until(lambda: "ingest-3" not in programs(box), "the third has drained and gone", 40)
        until(lambda: len(sender.acked) > 200, "events were ACKed", 30)
    assert sender.refusals == [], "neither a new nor a draining replica refuses a request"

    def told() -> bool:
        books.refresh()
        return sender.positions <= Whole(books.accounts("replicas")).acked

    until(told, "every ACK is in the books", 30)
    books.close()
