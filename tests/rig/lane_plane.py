"""A data plane without Spark: one ingest replica and a lane of each kind in plain processes, there in seconds.

For what is not about where lanes run. Topics are its own, so that nothing of other tests waits in them.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from dataplane.names import LANE_KINDS
from localbox.ports import free_ports
from localbox.settings import ROOT
from tests.rig.books import AuditReader
from tests.rig.broker import Broker
from tests.rig.cluster import Cluster
from tests.rig.crash_cells import LaneServer
from tests.rig.data_plane import PLANTED
from tests.rig.lane_server import Order
from tests.rig.plane import Plane, until
from tests.rig.receiver import Receiver

RUN: Final = "run-1"


class LanePlane(Plane):
    """Everything between a customer and a destination, started when made."""

    def __init__(self, var: Path, partitions: int = 4) -> None:
        self.broker = Broker(var / "broker")
        self.broker.start()
        self.cluster = Cluster(self.broker.address, partitions=partitions)
        self.cluster.make_topics()
        self.cluster.publish_cell()
        self.port = free_ports(1)[0]
        self.receiver = Receiver()
        self.books = AuditReader(self.broker.address, self.cluster.topics)
        env = self._environment(var)
        self._log = (var / "ingest.log").open("wb")
        command = [sys.executable, "-m", "dataplane.ingest", "--replica", "ingest-1"]
        self._ingest = subprocess.Popen(command, cwd=ROOT, env=os.environ | env, stdout=self._log, stderr=self._log)
        self._server = LaneServer(env)
        for kind in LANE_KINDS:
            self._server.start(Order(kind, self.cluster.cell, kind, RUN, env))

    def _environment(self, var: Path) -> dict[str, str]:
        shutil.copytree(PLANTED, var / "planted")
        path = os.pathsep.join(map(str, (ROOT, ROOT / "platform", var / "planted")))
        return {"PYTHONPATH": path, **self.cluster.env(str(var), self.port)}

    def close(self) -> None:
        """End everything, in order."""
        self.cluster.stop(RUN)
        until(lambda: self._server.ended.keys() >= set(LANE_KINDS), "every lane drains", 60)
        self._server.close()
        self._ingest.terminate()
        self._ingest.wait(40)
        self._log.close()
        self.books.close()
        self.receiver.close()
        self.broker.stop()
