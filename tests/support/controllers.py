"""The four controllers on Postgres, each as its task runs it. Kafka and the processes of cells are kept in memory:
the subject is what the controllers decide, and what they write under which lease.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final, Literal, cast

import msgspec

from controlplane.autoscaler.offsets import GroupProgress, OffsetReader
from controlplane.autoscaler.tasks import Autoscaler, ScaleLimits
from controlplane.compute.memory import MemoryCompute
from controlplane.control_topic import ControlTopic, PublishedRecord
from controlplane.deployer import tasks as deployer
from controlplane.deployer.snapshot import RolloutPolicy
from controlplane.locks import alone
from controlplane.observer.judging import judge_cells
from controlplane.provisioner.act import Effects
from controlplane.provisioner.tasks import Provisioner
from controlplane.settings import control_settings
from controlplane.topics import ExistingTopic, TopicCreator
from dataplane.names import lane_group
from dataplane.tables.records import Record, record_key
from mgmt.models import Cell, Heartbeat
from mgmt.pipes.topics import TopicPlan
from mgmt.ramps.schedule import RampPolicy

Name = Literal["observe", "provision", "deploy", "scale"]
NAMES: Final[tuple[Name, ...]] = ("observe", "provision", "deploy", "scale")
RAMP: Final = RampPolicy(
    steps=(5, 50, 100),
    hold=timedelta(seconds=10),
    evidence=1,
    patience=timedelta(seconds=30),
    recently=timedelta(days=1),
)
ROLLOUT: Final = RolloutPolicy(up_s=30, watch_s=20)
MOST_LANES: Final = 3


class MemoryControl:
    """Control topic as its publisher sees it."""

    def __init__(self) -> None:
        self.published: dict[str, PublishedRecord] = {}
        self.end = 0

    def refresh(self) -> None:
        """Do nothing: there is no other writer."""

    def publish(self, records: Sequence[Record]) -> None:
        """Publish each record at the next offset."""
        for record in records:
            self.published[record_key(record)] = PublishedRecord(record.version, self.end)
            self.end += 1


class MemoryTopicAdmin:
    """Topics without a message."""

    def __init__(self) -> None:
        self._made: dict[str, ExistingTopic] = {}

    def find(self, names: Iterable[str]) -> dict[str, ExistingTopic]:
        """Return those of the topics that exist."""
        return {name: self._made[name] for name in names if name in self._made}

    def ensure(self, plans: Iterable[TopicPlan]) -> dict[str, ExistingTopic]:
        """Return all of the topics, and create the missing ones."""
        plans = list(plans)
        for plan in plans:
            self._made.setdefault(plan.name, ExistingTopic(plan.name, f"id of {plan.name}", plan.partitions))
        return self.find(plan.name for plan in plans)

    def ends(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """Return the start of each partition."""
        return dict.fromkeys(places, 0)

    def commit_first_offsets(
        self,
        groups: Mapping[str, Sequence[ExistingTopic]],
        passed: Mapping[tuple[str, int], int] = MappingProxyType({}),
    ) -> None:
        """Do nothing: no lane reads here."""


class MemoryOffsets:
    """Incoming and settled messages of the groups of a cell; a test adds to both."""

    def __init__(self) -> None:
        self.came: dict[str, int] = {}
        self.settled: dict[str, int] = {}

    def progress(self, groups: Mapping[str, object]) -> dict[str, GroupProgress]:
        """Return the progress of each group."""
        return {group: GroupProgress(self.came.get(group, 0), self.settled.get(group, 0)) for group in groups}


class Controllers:
    """State that each controller keeps while its process lives, and state that all of them read."""

    def __init__(self) -> None:
        self.control, self.compute, self.offsets = MemoryControl(), MemoryCompute(), MemoryOffsets()
        self._topics = MemoryTopicAdmin()
        self._autoscaler = Autoscaler(cast(OffsetReader, self.offsets), ScaleLimits(lanes=MOST_LANES))
        self._now = datetime.min.replace(tzinfo=UTC)
        self.start_provisioner()

    def start_provisioner(self) -> None:
        """Start a new process of the Provisioner, without memory."""
        hands = Effects(
            settings=msgspec.structs.replace(control_settings(), ramp=RAMP),
            topics=cast(TopicCreator, self._topics),
            control=cast(ControlTopic, self.control),
            compute=self.compute,
            problems={},
        )
        self._provisioner = Provisioner(hands, clock=lambda: self._now)

    def tick(self, name: Name, now: datetime) -> str:
        """Run one tick at that time; return what was done, as text."""
        match name:
            case "observe":
                return f"{judge_cells(now)} verdicts turned"
            case "provision":
                self._now = now
                return self._provisioner.tick()
            case "deploy":
                return alone(deployer.LOCK, lambda: ", ".join(deployer.rounds(ROLLOUT, now)))
            case "scale":
                return self._autoscaler.tick(now)


class Processes:
    """Processes of the cells, as heartbeats report them: the desired application with all of its lanes."""

    def __init__(self, controllers: Controllers, broken: set[str]) -> None:
        """Start without work. `broken`: releases whose lanes do not come up."""
        self._controllers, self._broken = controllers, broken
        self._cpu_s: dict[tuple[str, str], float] = {}
        self.silent: set[str] = set()  # cells without heartbeats
        self.busy: set[str] = set()  # cells whose process lanes are overloaded

    def run(self, span_s: float, now: datetime) -> None:
        """Do so many seconds of work, and store the heartbeats at their end."""
        rows = [self._beat("", "ingest-1", "ingest", 0, now)]
        for cell in Cell.objects.all():
            desired = self._controllers.compute.observe(cell.id).desired
            if desired is None or cell.id in self.silent or desired.release in self._broken:
                continue
            self._work(cell, span_s)
            rows.append(self._beat(cell.id, "driver", "driver", desired.epoch, now))
            lanes = [(kind, f"{kind}-{number}") for kind, count in cell.lanes.items() for number in range(count)]
            rows += [self._beat(cell.id, writer, kind, desired.epoch, now) for kind, writer in lanes]
        fields = ["kind", "epoch", "incarnation", "state", "table_offset", "at", "body"]
        Heartbeat.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["cell", "writer"], update_fields=fields
        )

    def _work(self, cell: Cell, span_s: float) -> None:
        offsets, group = self._controllers.offsets, lane_group(cell.id, "process")
        lanes, busy = cell.lanes.get("process", 0), cell.id in self.busy
        for number in range(lanes):
            key = (cell.id, f"process-{number}")
            self._cpu_s[key] = self._cpu_s.get(key, 0.0) + (0.95 if busy else 0.01) * span_s
        came = offsets.came.get(group, 0) + (round(2_000 * span_s) if busy else 0)
        offsets.came[group] = came
        settled = offsets.settled.get(group, 0)
        offsets.settled[group] = min(came, settled + round((900 * lanes if busy else 1e6) * span_s))

    def _beat(self, cell: str, writer: str, kind: str, epoch: int, now: datetime) -> Heartbeat:
        body = {"pid": 1 + epoch, "cpu_s": self._cpu_s.get((cell, writer), 0.0)}
        held, run = self._controllers.control.end, f"run-{epoch}"
        return Heartbeat(
            cell=cell,
            writer=writer,
            kind=kind,
            epoch=epoch,
            incarnation=run,
            state="running",
            table_offset=held,
            at=now,
            body=body,
        )
