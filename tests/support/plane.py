"""A data plane as a customer sees it, and its ledger: the base of each test setup, whatever runs its lanes."""

import http.client
import json
import os
import shutil
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Final

from confluent_kafka import TopicPartition

from dataplane.names import Purpose
from loadgen.scripted import Receiver
from localbox.ports import free_ports
from localbox.settings import ROOT
from tests.support.broker import Broker
from tests.support.cluster import Cluster, key_of
from tests.support.kafka import admin_consumer
from tests.support.ledger_checks import AuditReader, Whole
from tests.support.patience import Patience, until
from tests.support.sender import Sender

PLANTED: Final = Path(__file__).parent / "planted"


class Plane(ABC):
    """Ingest on `port`, a broker, a cell's topics, a configurable destination, and the ledger read from audit."""

    def __init__(self, var: Path, partitions: int) -> None:
        """Start the broker; the copied code in `var / "planted"` injects faults into the processes."""
        self.broker = Broker(var / "broker")
        self.broker.start()
        self.cluster = Cluster(self.broker.address, partitions=partitions)
        self.cluster.make_topics()
        self.cluster.publish_cell()
        self.port = free_ports(1)[0]
        self.receiver = Receiver()
        self.books = AuditReader(self.broker.address, self.cluster.topics)
        # A copy, not the checkout: applications run their release alone.
        shutil.copytree(PLANTED, var / "planted")
        path = os.pathsep.join(map(str, (ROOT, ROOT / "platform", var / "planted")))
        self.env = {"PYTHONPATH": path} | self.cluster.env(str(var), self.port)

    def wait_ready(self) -> None:
        """Wait until ingest is ready."""

        def ready() -> bool:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
            try:
                connection.request("GET", "/readyz")
                return connection.getresponse().status == 200
            except OSError:
                return False
            finally:
                connection.close()

        until(ready, "ingest is ready", 30)

    def sender(self, key: str, rate: float = 200.0, *, field: str = "n") -> Sender:
        """Return a sender of events for the pipe of this API key."""
        return Sender(self.port, key, rate, field=field)

    def add_pipe(self, name: str, destinations: dict[str, dict[str, Any]], **spec: Any) -> str:
        """Add a pipe for a test; return its API key. Waits until every ingest replica knows it."""
        key = key_of(name)
        self.cluster.add_pipe(name, key, destinations, **spec)
        knowing: set[int] = set()

        def known() -> bool:
            status, _, body = self.post(key, b"not json")  # from any replica: the kernel chooses
            if status == 400:
                knowing.add(int(json.loads(body)["request_id"].split("-")[0], 16))
            return self.ingest_pids() <= knowing

        until(lambda: any(known() for _ in range(4)), "every replica knows the pipe", 30, seen=lambda: knowing)
        return key

    @abstractmethod
    def ingest_pids(self) -> set[int]:
        """Return the pids of the ingest replicas."""

    def post(self, key: str, body: bytes, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Send one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=15)
        sent = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request("POST", "/v1/events", body, sent)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def records_on(self, purpose: Purpose) -> int:
        """Return how many records a topic of the cell has ever had."""
        topic = self.cluster.topics[purpose]
        with admin_consumer({"bootstrap.servers": self.broker.address, "group.id": "looks-on"}) as reader:
            places = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
            return sum(reader.get_watermark_offsets(place, timeout=30)[1] for place in places)

    def whole(self, pipe: str) -> Whole:
        """Return the current account of a pipe."""
        self.books.refresh()
        return Whole(self.books.accounts(pipe))

    def settled(self, pipe: str, positions: set[str], limit_s: float = 60.0) -> Whole:
        """Return the account of a pipe once all units are settled and the ledger knows all `positions` as ACKed."""
        whole = self.whole(pipe)
        patience = Patience(limit_s)
        while whole.open() or not positions <= whole.acked or whole.upstream_open():
            missing = len(positions - whole.acked)
            assert not patience.is_over, f"{whole.open()} units open, {missing} not known as ACKed: {whole}"
            time.sleep(0.2)
            whole = self.whole(pipe)
        return whole
