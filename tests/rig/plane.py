"""A data plane as a customer sees it, and its books: what every kind of rig has, whatever runs its lanes."""

import http.client
import json
import os
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from localbox.ports import free_ports
from localbox.settings import ROOT
from tests.rig.books import AuditReader, Whole
from tests.rig.broker import Broker
from tests.rig.cluster import Cluster, key_of
from tests.rig.patience import Patience
from tests.rig.receiver import Receiver
from tests.rig.sender import Sender

PLANTED: Final = Path(__file__).parent / "planted"


def until(
    truth: Callable[[], object], what: str, limit_s: float = 60.0, *, seen: Callable[[], object] | None = None
) -> float:
    """Wait until something holds; returns the seconds that count (see Patience). `seen`: what there was instead."""
    patience = Patience(limit_s)
    while not truth():
        if patience.is_over:
            pytest.fail(f"not within {limit_s:g} s: {what}" + (f"; instead: {seen()}" if seen else ""))
        time.sleep(0.1)
    return patience.counted_s


class Plane(ABC):
    """Ingest on `port`, a broker, a cell's topics, a destination that behaves as told, and the ledger by its audit."""

    def __init__(self, var: Path, partitions: int) -> None:
        """The broker runs; its client in `var / "planted"` is one in which things may go wrong on purpose."""
        self.broker = Broker(var / "broker")
        self.broker.start()
        self.cluster = Cluster(self.broker.address, partitions=partitions)
        self.cluster.make_topics()
        self.cluster.publish_cell()
        self.port = free_ports(1)[0]
        self.receiver = Receiver()
        self.books = AuditReader(self.broker.address, self.cluster.topics)
        # Not from the checkout: applications run their release alone.
        shutil.copytree(PLANTED, var / "planted")
        path = os.pathsep.join(map(str, (ROOT, ROOT / "platform", var / "planted")))
        self.env = {"PYTHONPATH": path} | self.cluster.env(str(var), self.port)

    def wait_ready(self) -> None:
        """Both replicas answer."""

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
        """A customer of a pipe, by its key."""
        return Sender(self.port, key, rate, field=field)

    def add_pipe(self, name: str, destinations: dict[str, dict[str, Any]], **spec: Any) -> str:
        """A pipe of its own for a test; returns its key. Waits until every replica of ingest knows it."""
        key = key_of(name)
        self.cluster.add_pipe(name, key, destinations, **spec)
        knowing: set[int] = set()

        def known() -> bool:
            status, _, body = self.post(key, b"not json")  # whoever gets it answers: the kernel chooses
            if status == 400:
                knowing.add(int(json.loads(body)["request_id"].split("-")[0], 16))
            return self.ingest_pids() <= knowing

        until(lambda: any(known() for _ in range(4)), "every replica knows the pipe", 30, seen=lambda: knowing)
        return key

    @abstractmethod
    def ingest_pids(self) -> set[int]:
        """The processes of the replicas."""

    def post(self, key: str, body: bytes, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=15)
        sent = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request("POST", "/v1/events", body, sent)
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def whole(self, pipe: str) -> Whole:
        """The books of a pipe as they stand."""
        self.books.refresh()
        return Whole(self.books.accounts(pipe))

    def settled(self, pipe: str, positions: set[str], limit_s: float = 60.0) -> Whole:
        """The books once everything of a pipe is settled and the ledger knows every one of `positions` as ACKed."""
        whole = self.whole(pipe)
        patience = Patience(limit_s)
        while whole.open() or not positions <= whole.acked or whole.upstream_open():
            missing = len(positions - whole.acked)
            assert not patience.is_over, f"{whole.open()} units open, {missing} not known as ACKed: {whole}"
            time.sleep(0.2)
            whole = self.whole(pipe)
        return whole
