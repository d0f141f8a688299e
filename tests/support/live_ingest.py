"""An ingest replica on a broker of its own, for tests whose pipes are rows of the database."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dataplane.ledger.meta import Headers, MessageMeta, read_meta
from tests.support.cluster import Cluster, broker_for_cells
from tests.support.ingest_replica import Replica
from tests.support.patience import until
from tests.support.topic_reader import read_topic

CELL: Final = "c1"


class LiveIngest:
    """Ingest at `url`, on the broker `kafka`."""

    def __init__(self, cluster: Cluster, replica: Replica) -> None:
        self.kafka, self.url = cluster.kafka, f"http://127.0.0.1:{replica.port}"
        self._cluster, self._port = cluster, replica.port

    def accept(self, pipe: str, tenant: str, key: str) -> str:
        """Publish a pipe with one source `shop` and this key; return the position of its first accepted event."""
        self._cluster.add_pipe(pipe, key, {"crm": {"url": "http://127.0.0.1:1/"}}, tenant=tenant)
        found: list[str] = []
        until(lambda: found.append(self._position(key)) or found[-1], "ingest accepts the key", 30)  # type: ignore[func-returns-value]
        return found[-1]

    def add_url(self, pipe: str, preset: str, secret: str, *headers: str) -> str:
        """Publish the webhook settings of a pipe's source and a URL; return its path. `accept` the pipe afterwards."""
        return self._cluster.add_webhook(pipe, preset, secret, *headers)

    def stored(self, pipe: str) -> list[tuple[bytes, MessageMeta, Headers]]:
        """Return what ingest stored of a pipe: body, metadata and headers of each event, in order."""
        found = [
            (message.value(), read_meta(headers), headers)
            for message in read_topic(self.kafka, self._cluster.topics["ingest"].name, 1)
            for headers in [message.headers() or []]
        ]
        return [one for one in found if one[1].pipe == pipe]

    def _position(self, key: str) -> str:
        """Send an event; return its position, or "" if it is not accepted."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
            connection.request("POST", "/v1/events", b"{}", headers)
            answer = connection.getresponse()
            return str(json.load(answer)["position"]) if answer.status == 202 else ""
        except OSError:
            return ""
        finally:
            connection.close()


@contextmanager
def live_ingest(folder: Path) -> Iterator[LiveIngest]:
    """Run a broker with the topics of a cell, and ingest."""
    with broker_for_cells(folder / "broker") as broker:
        cluster = Cluster(broker.address, CELL, partitions=1)
        cluster.make_cell_topics(("process",))
        cluster.publish_cell()
        replica = Replica(cluster, folder)
        try:
            yield LiveIngest(cluster, replica)
        finally:
            replica.close()
