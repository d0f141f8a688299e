"""A data plane without Spark: one ingest replica and a lane of each kind in plain processes, ready in seconds.

For tests that do not depend on where lanes run. It has its own topics, so that nothing of other tests waits there.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from dataplane.names import LANE_KINDS, LaneKind
from localbox.settings import ROOT
from localbox.testing_kafka import role_env
from tests.support.crash_cells import LaneServer
from tests.support.lane_server import Order
from tests.support.patience import until
from tests.support.plane import Plane

RUN: Final = "run-1"
Step = tuple[str, int]  # file below dataplane/, and line
NOBODY: Final[Mapping[LaneKind, Step]] = MappingProxyType({})


class LanePlane(Plane):
    """Everything between a sender and a destination, started at once; `more` extends the environment of all."""

    def __init__(
        self,
        var: Path,
        partitions: int = 4,
        doomed: Mapping[LaneKind, Step] = NOBODY,
        *,
        more: Mapping[str, str] = MappingProxyType({}),
        of_lanes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Start everything.

        `doomed`: lanes that kill themselves at the third execution of a step, until they are restarted.
        `of_lanes`: additional environment of the lanes alone.
        """
        super().__init__(var, partitions)
        self.env = self.env | dict(more)
        self._start(var, doomed, of_lanes)

    def _start(self, var: Path, doomed: Mapping[LaneKind, Step], of_lanes: Mapping[str, str]) -> None:
        self._log = (var / "ingest.log").open("wb")
        command = [sys.executable, "-m", "dataplane.ingest", "--replica", "ingest-1"]
        self._ingest = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | self.env | role_env("ingest"), stdout=self._log, stderr=self._log
        )
        self._server = LaneServer(self.env)
        self._of_lanes, self._lane_log = of_lanes, str(var / "lane.log")
        for kind in LANE_KINDS:
            self._server.start(self._order(kind, doomed.get(kind)))

    def _order(self, kind: LaneKind, kill_at: Step | None = None) -> Order:
        env = {**self.env, **self._of_lanes}
        return Order(kind, self.cluster.cell, kind, RUN, env, kill_at=kill_at, nth=3, log=self._lane_log)

    def is_dead(self, kind: LaneKind) -> bool:
        """Return True if the lane has ended."""
        return kind in self._server.ended

    def start_again(self, kind: LaneKind) -> None:
        """Start a lane in place of one that was killed."""
        self._server.start(self._order(kind))

    def ingest_pids(self) -> set[int]:
        return {self._ingest.pid}

    def kill(self) -> None:
        """Kill every process with SIGKILL, the broker first, as if the machine were gone. Safe to call twice."""
        self.broker.kill()
        if self._log.closed:
            return
        self._ingest.kill()
        self._ingest.wait(10)
        self._server.close()
        self._log.close()
        self.books.close()

    def close(self) -> None:
        """Stop everything, in order."""
        self.cluster.stop(RUN)
        until(lambda: self._server.ended.keys() >= set(LANE_KINDS), "every lane drains", 60)
        self._server.close()
        self._ingest.terminate()
        self._ingest.wait(40)
        self._log.close()
        self.books.close()
        self.receiver.close()
        self.broker.stop()
