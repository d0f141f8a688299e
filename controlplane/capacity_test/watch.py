"""Read the counters of a cell's groups: CPU from heartbeats, settled messages from Kafka's offsets."""

import socket
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
import psutil
from django.db.models import QuerySet
from msgspec import Struct

from controlplane.autoscaler.figures import GroupRates, GroupSample, LaneClock, clock_of, figures_of
from controlplane.autoscaler.offsets import GroupProgress, OffsetReader
from controlplane.capacity_test.judge import LANES, Group
from dataplane.names import INPUTS_OF, LaneKind, lane_group
from mgmt.cells.queries.cells import places_of
from mgmt.models import Heartbeat

HEARTBEAT_MAX_AGE: Final = timedelta(
    seconds=15
)  # heartbeats of a busy machine are late; each clock carries its own time


class GroupCounters(Struct, frozen=True):
    """Counters of all groups at one time.

    busy_s, all_s: seconds of all cores of this machine that were busy, and in total
    """

    groups: Mapping[Group, GroupSample]
    busy_s: float
    all_s: float


class CellWatch:
    """Reader of the counters of one cell, and of the ingest replicas, which serve all cells."""

    def __init__(self, cell: str, offsets: OffsetReader) -> None:
        self._cell = cell
        self._offsets = offsets
        self._places = {kind: places_of(cell, *INPUTS_OF[kind]) for kind in LANES}

    def moment(self) -> GroupCounters:
        """Return the counters as they are now."""
        progress = self._progress()
        now_s, clocks = time.time(), self._clocks()
        groups: dict[Group, GroupSample] = {"ingest": GroupSample(now_s, clocks["ingest"], 0, 0)}
        for kind in LANES:
            groups[kind] = GroupSample(now_s, clocks[kind], progress[kind].came, progress[kind].settled)
        times = psutil.cpu_times()
        whole_s = sum(times) - times.guest - times.guest_nice  # both are in user and nice already
        return GroupCounters(groups, whole_s - times.idle - times.iowait, whole_s)

    def backlog(self) -> int:
        """Return the number of messages that wait for the cell's lanes."""
        return sum(max(0, one.came - one.settled) for one in self._progress().values())

    def remote_hosts(self) -> set[str]:
        """Return the other hosts that run lanes of the cell; they cannot reach this host's loopback."""
        bodies = self._beats().filter(cell=self._cell, kind__in=LANES).values_list("body", flat=True)
        return {body["host"] for body in bodies} - {socket.gethostname()}

    def missing(self) -> list[Group]:
        """Return the groups without a recent heartbeat."""
        return [group for group, clocks in self._clocks().items() if not clocks]

    def _progress(self) -> dict[LaneKind, GroupProgress]:
        found = self._offsets.progress({lane_group(self._cell, kind): places for kind, places in self._places.items()})
        return {kind: found[lane_group(self._cell, kind)] for kind in LANES}

    def _clocks(self) -> dict[Group, dict[str, LaneClock]]:
        found: dict[Group, dict[str, LaneClock]] = {"ingest": {}, "process": {}, "transmit": {}}
        for kind, writer, at, body in self._beats().values_list("kind", "writer", "at", "body"):
            found[msgspec.convert(kind, Group)][writer] = clock_of(at, body)
        return found

    def _beats(self) -> QuerySet[Heartbeat]:
        since = datetime.now(UTC) - HEARTBEAT_MAX_AGE
        return Heartbeat.objects.filter(
            cell__in=["", self._cell], kind__in=["ingest", *LANES], state="running", at__gte=since
        )


def between(old: GroupCounters, new: GroupCounters, acked: int) -> tuple[dict[Group, GroupRates], float]:
    """Return the rates of each group between two times, and the busy share (0..1) of the machine's cores.

    acked: events ACKed meanwhile, which are the work of ingest: no other counter has them immediately
    """
    ingest = new.groups["ingest"]
    ends: dict[Group, GroupSample] = {**new.groups, "ingest": GroupSample(ingest.at_s, ingest.lanes, acked, acked)}
    figures = {group: figures_of([old.groups[group], ends[group]])[0] for group in ends}
    return figures, (new.busy_s - old.busy_s) / max(1e-9, new.all_s - old.all_s)
