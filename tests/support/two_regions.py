"""Two Kafka clusters, and the mirror between them as a process that a test may kill."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from confluent_kafka import KafkaException

from dataplane.mirror.clusters import STANDBY_SETTINGS, ClusterAddress, MirrorCluster
from dataplane.mirror.positions import MirrorError
from dataplane.mirror.records import MirrorProgress, MirrorRecords
from dataplane.names import PartitionKey
from dataplane.spec.kafka_security import VARIABLE
from localbox.ports import free_ports
from localbox.settings import ROOT
from localbox.testing_kafka import administrator, role_env
from tests.support.broker import Broker
from tests.support.patience import until
from tests.support.served_metrics import served_metrics


class MirrorProcess:
    """`python -m dataplane.mirror` from one cluster to another."""

    def __init__(self, active: str, standby: str, log: Path) -> None:
        path = os.pathsep.join((str(ROOT), str(ROOT / "platform")))
        (self._port,) = free_ports(1)
        given = {
            "PENSTOCK_KAFKA": active,
            "PENSTOCK_STANDBY_KAFKA": standby,
            "PENSTOCK_METRICS": f"127.0.0.1:{self._port}",
            "PYTHONPATH": path,
        }
        if access := role_env("control"):  # on both clusters, as the guide asks
            given |= access | {STANDBY_SETTINGS: access[VARIABLE]}
        self.env, self._log = os.environ | given, log
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "dataplane.mirror"]
            self._process = subprocess.Popen(command, cwd=ROOT, env=self.env, stdout=log, stderr=log)

    def served(self) -> set[str]:
        """Return the names of the metrics that the mirror serves; none while it starts."""
        try:
            return served_metrics(self._port)
        except OSError:
            return set()

    @property
    def pid(self) -> int:
        """Return the process id of the mirror that runs."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """End the mirror in order; return its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        if self._process is None:
            return 0
        self._process.send_signal(number)
        code = self._process.wait(40)
        self._process = None
        return code


class TwoRegions:
    """An active and a standby cluster, and the mirror."""

    def __init__(self, active: Broker, standby: Broker, var: Path) -> None:
        self.brokers = (active, standby)
        self.active = MirrorCluster(ClusterAddress(active.address, administrator()))
        self.standby = MirrorCluster(ClusterAddress(standby.address, administrator()))
        self.mirror = MirrorProcess(active.address, standby.address, var / "mirror.log")

    def records(self) -> MirrorRecords:
        try:
            return self.standby.read_records()
        except (KafkaException, MirrorError):  # no answer, or not in time
            return MirrorRecords()

    def progress(self) -> MirrorProgress:
        return self.records().progress or MirrorProgress("waiting", "", 0)

    def wait_copying(self, limit_s: float = 60.0) -> None:
        """Wait until the mirror that runs now reports that it has copied something."""
        before_us = self.progress().at_us

        def is_copying() -> bool:
            progress = self.progress()
            return progress.at_us > before_us and progress.state == "copying" and progress.copied > 0

        until(is_copying, "the mirror copies", limit_s, seen=self.progress)

    def wait_mirrored(self, limit_s: float = 60.0) -> None:
        """Wait until the standby cluster has all that the active one has now."""
        ends: dict[PartitionKey, int] = {}

        def are_ends_known() -> bool:
            places = [place for one in self.active.layouts().values() if one.is_copied for place in one.places]
            with suppress(KafkaException):  # new partitions have no leader at first
                ends.update(self.active.ends(places))
            return bool(ends)

        until(are_ends_known, "the active cluster answers", limit_s)

        def is_mirrored() -> bool:
            stored = self.progress().stored
            return all(stored.get(topic, {}).get(number, -1) >= end for (topic, number), end in ends.items())

        until(is_mirrored, "everything is mirrored", limit_s, seen=self.progress)

    def region(self, *words: str, after_failover: bool = False, active: str = "") -> subprocess.CompletedProcess[str]:
        """Run `manage.py region` with these words, without a database; `active` replaces PENSTOCK_KAFKA."""
        env = self.mirror.env | self._environment(after_failover=after_failover)
        env |= {"PENSTOCK_KAFKA": active} if active else {}
        env |= {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
        command = [sys.executable, str(ROOT / "manage.py"), "region", *words]
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=120)

    def _environment(self, *, after_failover: bool = False) -> dict[str, str]:
        first, second = (one.address for one in (self.brokers[::-1] if after_failover else self.brokers))
        return {"PENSTOCK_KAFKA": first, "PENSTOCK_STANDBY_KAFKA": second}

    def close(self) -> None:
        self.mirror.kill()
        self.active.close()
        self.standby.close()


@contextmanager
def running_brokers(var: Path) -> Iterator[tuple[Broker, Broker]]:
    """Run two brokers, each a cluster."""
    brokers = Broker(var / "active"), Broker(var / "standby")
    try:
        for broker in brokers:
            broker.start()
        yield brokers
    finally:
        for broker in brokers:
            broker.kill()
