"""An ingest replica as a process of its own, on a real broker."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka.admin import NewTopic

from dataplane.tables.records import Record
from localbox.settings import ROOT
from localbox.testing import free_ports
from localbox.testing_kafka import administrator, role_env
from tests.support.broker import Broker
from tests.support.cluster import KEY, PIPE, TENANT, Cluster


@contextmanager
def feeding_cluster(
    folder: Path, topic: str, sources: dict[str, Any], *records: Record, partitions: int = 1
) -> Iterator[Cluster]:
    """Start a broker with a cell whose pipe has these sources, and a topic that sources of type kafka may read.

    records: are published before the pipe
    """
    broker = Broker(folder / "broker")
    broker.start()
    made = Cluster(broker.address, partitions=partitions)
    made.make_topics()
    made.publish_cell()
    made.admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
    made.publish(*records)
    made.add_pipe(PIPE, KEY, {"crm": {"url": "http://127.0.0.1:1/"}}, sources=sources)
    yield made
    broker.stop()


class Replica:
    """One ingest replica that a test may kill; it also reads topics `orders.*` of the cell's own broker, `theirs`."""

    def __init__(self, cluster: Cluster, var: Path, name: str = "ingest-1") -> None:
        theirs = {"bootstrap.servers": cluster.kafka, "session.timeout.ms": "6000"} | administrator()
        clusters = {"theirs": {"tenants": [TENANT], "topics": ["orders.*"], "settings": theirs}}
        file = var / "clusters.json"
        file.write_text(json.dumps(clusters))
        port = next(iter(free_ports().values()))
        self.port = int(port)
        self._env = os.environ | cluster.env(str(var), self.port) | {"PENSTOCK_KAFKA_CLUSTERS": str(file)}
        self._env |= role_env("ingest")
        self._env["PYTHONPATH"] = f"{ROOT}:{ROOT / 'platform'}"
        self._name = name
        self._log = var / f"{name}.log"
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "dataplane.ingest", "--replica", self._name]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=ROOT, env=self._env, stdout=log, stderr=log)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(10)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(40)
