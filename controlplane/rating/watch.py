"""Reads what the platform knows of a cell's groups: heartbeats for CPU, Kafka's offsets for what is settled."""

import socket
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
import psutil
from django.db.models import QuerySet
from msgspec import Struct

from controlplane.autoscaler.figures import Figure, LaneClock, Sample, clock_of, figures_of
from controlplane.autoscaler.offsets import Offsets, Progress
from controlplane.rating.judge import LANES, Group
from dataplane.names import INPUTS_OF, LaneKind, lane_group
from mgmt.models import Heartbeat
from mgmt.queries.cells import places_of

HEARD: Final = timedelta(seconds=15)  # a busy machine tells late; each clock says by itself of when it is


class Moment(Struct, frozen=True):
    """Counters of all groups at one moment. `busy_s`, `all_s`: seconds of this machine's cores, idle ones too."""

    groups: Mapping[Group, Sample]
    busy_s: float
    all_s: float


class Watch:
    """One cell, and the ingest replicas, which serve all cells."""

    def __init__(self, cell: str, offsets: Offsets) -> None:
        self._cell = cell
        self._offsets = offsets
        self._places = {kind: places_of(cell, *INPUTS_OF[kind]) for kind in LANES}

    def moment(self) -> Moment:
        """Now."""
        progress = self._progress()
        now_s, clocks = time.time(), self._clocks()
        groups: dict[Group, Sample] = {"ingest": Sample(now_s, clocks["ingest"], 0, 0)}
        for kind in LANES:
            groups[kind] = Sample(now_s, clocks[kind], progress[kind].came, progress[kind].settled)
        times = psutil.cpu_times()
        whole_s = sum(times) - times.guest - times.guest_nice  # both are in user and nice already
        return Moment(groups, whole_s - times.idle - times.iowait, whole_s)

    def backlog(self) -> int:
        """Messages that lie before lanes."""
        return sum(max(0, one.came - one.settled) for one in self._progress().values())

    def far_hosts(self) -> set[str]:
        """Hosts of the cell's lanes that are not this one, and so do not reach its loopback."""
        bodies = self._beats().filter(cell=self._cell, kind__in=LANES).values_list("body", flat=True)
        return {body["host"] for body in bodies} - {socket.gethostname()}

    def missing(self) -> list[Group]:
        """Groups of which nothing is heard."""
        return [group for group, clocks in self._clocks().items() if not clocks]

    def _progress(self) -> dict[LaneKind, Progress]:
        found = self._offsets.progress({lane_group(self._cell, kind): places for kind, places in self._places.items()})
        return {kind: found[lane_group(self._cell, kind)] for kind in LANES}

    def _clocks(self) -> dict[Group, dict[str, LaneClock]]:
        found: dict[Group, dict[str, LaneClock]] = {"ingest": {}, "process": {}, "transmit": {}}
        for kind, writer, at, body in self._beats().values_list("kind", "writer", "at", "body"):
            found[msgspec.convert(kind, Group)][writer] = clock_of(at, body)
        return found

    def _beats(self) -> QuerySet[Heartbeat]:
        since = datetime.now(UTC) - HEARD
        return Heartbeat.objects.filter(
            cell__in=["", self._cell], kind__in=["ingest", *LANES], state="running", at__gte=since
        )


def between(old: Moment, new: Moment, acked: int) -> tuple[dict[Group, Figure], float]:
    """What each group did from one moment to the next, and the busy share of the machine's cores.

    What was ACKed meanwhile is what ingest did: nobody else counts it at once.
    """
    ingest = new.groups["ingest"]
    ends: dict[Group, Sample] = {**new.groups, "ingest": Sample(ingest.at_s, ingest.lanes, acked, acked)}
    figures = {group: figures_of([old.groups[group], ends[group]])[0] for group in ends}
    return figures, (new.busy_s - old.busy_s) / max(1e-9, new.all_s - old.all_s)
