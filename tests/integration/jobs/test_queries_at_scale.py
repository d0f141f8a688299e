"""Dedup and windows over many rows: equal to DuckDB's answer, despite kills and a change of the state's partitions."""

import contextlib
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any, Final

import psutil
import pytest
from confluent_kafka import TopicPartition

from controlplane.compute.processes import is_worker_daemon
from dataplane.jobs.rescaling import state_partitions
from dataplane.ledger.meta import META_HEADER, MessageMeta, encode_meta
from dataplane.names import WIRE_VERSION, Purpose, query_group
from localbox.settings import ROOT, settings_from
from localbox.spark import ensure_spark, spark_env
from localbox.testing_kafka import role_env
from tests.support.broker import Broker
from tests.support.cluster import PIPE, Cluster
from tests.support.kafka import admin_consumer
from tests.support.patience import until
from tests.support.sizes import STATE_EVENTS, STATE_KILLS
from tests.support.state_campaign import DEDUP, PARTITIONS, WINDOWS, Answers, Events, differences, write

QUERIES: Final[dict[str, Purpose]] = {"dedup": "dedup", "windows": "taps"}
BEFORE, AFTER = 1, 4  # partitions of the state
MOST_BYTES: Final = 6 << 30  # of the JVM and its Python workers, for any number of rows
LIMIT_S: Final = 3 * 3_600

log = logging.getLogger(__name__)


class Queries:
    """Dedup and windows of a cell, in a process without lanes."""

    def __init__(self, cluster: Cluster, var: Path) -> None:
        self._cluster, self._var = cluster, var
        box = settings_from(os.environ, dotenv=None)
        ensure_spark(box)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        self._env = inherited | cluster.env(str(var), 0) | spark_env(box)
        self._env |= {"PYTHONPATH": f"{ROOT}:{ROOT / 'platform'}", "PYSPARK_PYTHON": sys.executable}
        self._env |= {"SPARK_LOCAL_IP": "127.0.0.1"} | role_env("cells")
        self._process: subprocess.Popen[bytes] | None = None
        self._readers = {query: self._reader(query) for query in QUERIES}
        self.most_bytes = 0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._measure, name="memory", daemon=True)
        self._thread.start()

    def start(self, partitions: int) -> None:
        """Start the process with this number of state partitions."""
        command = [sys.executable, "-m", "tests.support.queries_process", self._cluster.cell, *QUERIES]
        env = self._env | {"PENSTOCK_STATE_PARTITIONS": str(partitions)}
        with (self._var / "queries.log").open("ab") as output:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=env, stdout=output, stderr=output, start_new_session=True
            )

    def kill(self) -> None:
        """Send SIGKILL to Python, the JVM and its workers at once."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(20)
            self._process = None

    def kill_worker(self, chance: random.Random) -> None:
        """Send SIGKILL to one of Spark's Python workers."""
        until(self._workers, "a Python worker runs", 120)
        with contextlib.suppress(psutil.NoSuchProcess, IndexError):  # it has just ended
            chance.choice(self._workers()).kill()

    def _workers(self) -> list[psutil.Process]:
        assert self._process is not None
        found = []
        for one in psutil.Process(self._process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):  # it has ended
                if is_worker_daemon(one) and not one.children():
                    found.append(one)
        return found

    def checkpoint(self, query: str) -> Path:
        return self._var / "data" / "checkpoints" / self._cluster.cell / f"{query}.g1"

    def partitions(self) -> list[int | None]:
        """Return the number of state partitions of each query; None while it has no checkpoint."""
        found = (self.checkpoint(query) for query in QUERIES)
        return [state_partitions(one) if one.exists() else None for one in found]

    def is_rescaling(self) -> bool:
        """Return True while a checkpoint is being copied and redistributed."""
        return any(self.checkpoint(query).with_name(f"{query}.g1.rescaling").exists() for query in QUERIES)

    def done(self) -> float:
        """Return the share of its input that the slower query has read."""
        return min(self._done(query) for query in QUERIES)

    def has_read(self, share: float) -> bool:
        """Return True once the slower query has read this share of its input."""
        return self.done() >= share

    def _done(self, query: str) -> float:
        topic = self._cluster.topics[QUERIES[query]]
        places = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
        reader = self._readers[query]
        read = sum(entry.offset for entry in reader.committed(places, timeout=30))
        return float(read / sum(reader.get_watermark_offsets(place, timeout=30)[1] for place in places))

    def _reader(self, query: str) -> Any:
        """Return a client for a query's offsets. One for each question may fail while the machine is busy."""
        group = {"bootstrap.servers": self._cluster.kafka, "group.id": query_group(self._cluster.cell, query)}
        return admin_consumer(group | {"log_level": 0})

    def close(self) -> None:
        """Kill the process, and stop measuring."""
        self.kill()
        self._ending.set()
        self._thread.join(10)
        for reader in self._readers.values():
            reader.close()

    def _measure(self) -> None:
        while not self._ending.wait(1):
            if (process := self._process) is not None:
                self.most_bytes = max(self.most_bytes, _bytes_of(process.pid))


def _bytes_of(pid: int) -> int:
    total = 0
    try:
        for one in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
            total += one.memory_full_info().pss
    except psutil.Error:  # one has just ended
        return 0
    return total


def scene(cluster: Cluster) -> None:
    """Publish the pipe. A record that no lane settles stops the cell's own clock: the events bring one."""
    cluster.make_cluster_topics()
    cluster.make_cell_topics(("process",))
    cluster.publish_cell()
    cluster.add_pipe(PIPE, "", {"crm": {"url": "http://127.0.0.1:1/"}}, dedup=DEDUP, windows=WINDOWS)
    headers: list[Any] = [
        (META_HEADER, encode_meta(MessageMeta(WIRE_VERSION, "first", PIPE, 1, "shop", 0, 0, 0))),
        ("x", b""),
    ]
    cluster.producer.produce(cluster.topics["ingest"].name, b"{}", partition=0, headers=headers)
    assert cluster.producer.flush(20) == 0


def kill_often(queries: Queries, kills: int, chance: random.Random) -> None:
    """Kill the queries at `kills` moments of their work, and rescale the state half-way, with a kill meanwhile."""
    partitions = BEFORE
    queries.start(partitions)
    for number in range(kills):
        share = (number + 1) / (kills + 1)
        until(partial(queries.has_read, share), f"{share:.0%} are read", LIMIT_S)
        if number == kills // 2:
            partitions = AFTER
            queries.kill()
            queries.start(partitions)
            until(queries.is_rescaling, "the state is being redistributed", 240)
            queries.kill()
            queries.start(partitions)
        elif number % 2:
            queries.kill_worker(chance)
        else:
            queries.kill()
            queries.start(partitions)
    until(lambda: queries.partitions() == [AFTER] * len(QUERIES), "all state has been redistributed", 240)
    until(lambda: queries.done() >= 1, "everything is read", LIMIT_S)


@pytest.mark.long
@pytest.mark.timeout(LIMIT_S)
def test_dedup_and_windows_equal_a_batch_recomputation_row_for_row(tmp_path: Path):
    broker = Broker(tmp_path / "broker")
    broker.start()
    cluster, events = Cluster(broker.address, partitions=PARTITIONS), Events(STATE_EVENTS)
    scene(cluster)
    queries = Queries(cluster, tmp_path)
    try:
        write(events, cluster)
        began_s = time.monotonic()
        kill_often(queries, STATE_KILLS, random.Random(5))
        spent_s = time.monotonic() - began_s
        answers = Answers(events, cluster)
    finally:
        queries.close()
        broker.stop()
    rate, most_mb = events.count / spent_s, queries.most_bytes >> 20
    log.warning("%d events, %.0f s, %.0f events/s, at most %d MB", events.count, spent_s, rate, most_mb)

    found = differences(events, answers, tmp_path)
    assert found.pop("verdicts") == events.count
    assert found.pop("results") == len(answers.results) > 100
    assert found == dict.fromkeys(found, 0)
    for partition, returned in enumerate(answers.returned):
        of_partition = events.order[events.order % PARTITIONS == partition]
        assert returned == of_partition.tolist(), "verdicts return in the order in which lanes asked for them"
    assert queries.most_bytes < MOST_BYTES
