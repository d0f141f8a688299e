"""The status board: what is broken, since when, who is affected and what to do; cells, controllers and brokers.

Every figure is one that another page shows, too, and comes from the same query. The number of queries depends neither
on the cells nor on the pipes.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django.db.models import Count

from dataplane.names import INGEST_GROUP
from mgmt.alerts.queries.common_causes import CommonCause, common_causes
from mgmt.cells.expected_lanes import expected_lanes
from mgmt.cells.problems import Affected, Problem, in_order, of_cell, of_incidents, of_ingest, of_kafka, of_tasks
from mgmt.cells.queries.cell_trends import EMPTY, WATCHED, CellTrend, cell_trends
from mgmt.cells.queries.control import HEARTBEAT_MAX_AGE, CellSummary, ControllerSummary, cell_lines, controller_lines
from mgmt.cells.queries.overdue_tasks import OverdueTask, overdue_tasks
from mgmt.cells.queries.scaling import ScaleGroupSummary, scale_group_summaries
from mgmt.cells.schedule import PROVISION
from mgmt.deliveries.cause_wording import CAUSES
from mgmt.ledger.queries.all_losses import AllLosses, all_losses
from mgmt.ledger.queries.bucket_range import span_until
from mgmt.models import (
    Cell,
    ControlAction,
    Controller,
    DestinationHealth,
    Heartbeat,
    Incident,
    KafkaCheck,
    Pipe,
    PipeRevision,
    Rollout,
    RolloutStep,
    TaskRun,
)

LOSS_RANGE: Final = "24h"
REPLICA_REMEMBERED: Final = timedelta(hours=1)
DRIVER: Final = "driver"
TASK_OF: Final[Mapping[str, str]] = {
    Controller.PROVISION: PROVISION,
    Controller.DEPLOY: "deployer.tick",
    Controller.SCALE: "autoscaler.tick",
}
MOST_NEXT: Final = 3


@dataclass(frozen=True)
class BoardCell:
    """One cell.

    oldest_beat_at: newest heartbeat of the expected process that has been silent longest; None if one never sent any
    lag_us, came:   newest lag of the slower of process and transmit, and events per second; None: not measured
    is_stuck:       messages wait, and none was settled in the last seconds
    lost:           messages lost in the listed minutes of the last 24 hours
    """

    line: CellSummary
    affected: Affected
    oldest_beat_at: datetime | None
    lag_us: int | None
    is_stuck: bool
    came: float | None
    trend: CellTrend
    lost: int

    @property
    def problems(self) -> Iterable[Problem]:
        """The cell's problem, if it has one."""
        is_reporting = self.oldest_beat_at is not None
        return of_cell(self.line.cell, self.line.verdict, self.affected, is_reporting=is_reporting)

    @property
    def wanted(self) -> int:
        """Desired number of lanes."""
        return sum(self.line.cell.lanes.values())

    @property
    def running(self) -> int:
        """Number of desired lanes that send heartbeats."""
        return sum(min(heard, wanted) for _, heard, wanted in self.line.lanes)

    @property
    def missing(self) -> list[str]:
        """Kinds with fewer lanes than desired, as `process 1 of 2`."""
        return [f"{kind} {heard} of {wanted}" for kind, heard, wanted in self.line.lanes if heard < wanted]


@dataclass(frozen=True)
class BoardController:
    """One controller. `run`: last run of its task; `last`: its newest change or refusal; `waiting`: pending work."""

    line: ControllerSummary
    run: TaskRun | None
    is_overdue: bool
    last: ControlAction | None
    waiting: Sequence[str]


class IngestReplicas(NamedTuple):
    """Number of desired replicas, and of those that send heartbeats.

    wanted:      without an Autoscaler of ingest, the replicas that ran within the last hour and did not end in order,
                 and at least one if there was ever one
    is_observed: heartbeats of any process are stored; False if the Observer does not run
    """

    wanted: int
    running: int
    is_observed: bool


@dataclass(frozen=True)
class Board:
    """Everything that the status board shows."""

    now: datetime
    problems: Sequence[Problem]
    causes: Sequence[CommonCause]
    cells: Sequence[BoardCell]
    controllers: Sequence[BoardController]
    kafka: KafkaCheck | None
    ingest: IngestReplicas
    oldest: DestinationHealth | None
    losses: AllLosses


def board(now: datetime) -> Board:
    """Return the status board."""
    runs = {row.task: row for row in TaskRun.objects.all()}
    overdue, kafka = overdue_tasks(now), KafkaCheck.objects.filter(cluster=KafkaCheck.MAIN).first()
    affected, ingest = _affected(), _ingest(now)
    losses = all_losses(span_until(LOSS_RANGE, now))
    cells = _cells(now, affected, losses)
    everyone = affected[None]
    problems = [
        *of_kafka(kafka, everyone),
        *of_ingest(ingest.wanted, ingest.running, everyone, is_observed=ingest.is_observed),
        *(found for cell in cells for found in cell.problems),
        *of_tasks(overdue, runs, now),
        *of_incidents(Incident.objects.filter(resolved_at=None).order_by("opened_at"), CAUSES),
    ]
    return Board(
        now=now,
        problems=in_order(problems),
        causes=common_causes(),
        cells=cells,
        controllers=_controllers(now, runs, overdue),
        kafka=kafka,
        ingest=ingest,
        oldest=_oldest(),
        losses=losses,
    )


def _affected() -> Mapping[str | None, Affected]:
    """Return tenants and pipes by cell; under None those of all cells."""
    pipes = Pipe.objects.exclude(state=Pipe.State.CLOSED)
    counted = pipes.values("cell").annotate(tenants=Count("tenant", distinct=True), count=Count("id")).order_by()
    found: dict[str | None, Affected] = defaultdict(lambda: Affected(0, 0))
    for row in counted:
        found[row["cell"]] = Affected(row["tenants"], row["count"])
    whole = pipes.aggregate(tenants=Count("tenant", distinct=True), count=Count("id"))
    found[None] = Affected(whole["tenants"], whole["count"])
    return found


def _ingest(now: datetime) -> IngestReplicas:
    row = Cell.with_ingest.filter(id=INGEST_GROUP).first()
    beats = Heartbeat.objects.filter(cell="", kind=INGEST_GROUP).values_list("at", "state")
    running = [at for at, state in beats if state == "running"]
    recent = sum(at > now - REPLICA_REMEMBERED for at in running)
    wanted = row.lanes.get(INGEST_GROUP, 0) if row else max(recent, 1 if running else 0)
    since = now - HEARTBEAT_MAX_AGE
    is_observed = Heartbeat.objects.filter(at__gt=since).exists()
    return IngestReplicas(wanted, sum(at > since for at in running), is_observed)


def _cells(now: datetime, affected: Mapping[str | None, Affected], losses: AllLosses) -> list[BoardCell]:
    trends, lost, beats = cell_trends(now), losses.lost_by_cell(), _beats()
    groups: dict[str, list[ScaleGroupSummary]] = defaultdict(list)
    for group in scale_group_summaries():
        if group.group.kind in WATCHED:
            groups[group.group.cell_id].append(group)
    return [
        BoardCell(
            line=line,
            affected=affected[line.cell.id],
            oldest_beat_at=_oldest_beat(line.cell, beats[line.cell.id]),
            lag_us=max((one.lag_us for one in groups[line.cell.id] if one.lag_us is not None), default=None),
            is_stuck=any(one.lag_us is None and one.group.seen.get("backlog") for one in groups[line.cell.id]),
            came=next((one.came for one in groups[line.cell.id] if one.group.kind == "process"), None),
            trend=trends.get(line.cell.id, EMPTY),
            lost=lost.get(line.cell.id, 0),
        )
        for line in cell_lines(now)
    ]


def _beats() -> Mapping[str, dict[str, Heartbeat]]:
    found: dict[str, dict[str, Heartbeat]] = defaultdict(dict)
    for row in Heartbeat.objects.exclude(cell="").order_by("cell", "writer"):
        found[row.cell][row.writer] = row
    return found


def _oldest_beat(cell: Cell, beats: Mapping[str, Heartbeat]) -> datetime | None:
    if cell.is_asleep:
        return None
    driver = beats.get(DRIVER)
    expected = [DRIVER, *expected_lanes(cell.lanes, driver.body if driver else None)]
    if any(writer not in beats for writer in expected):
        return None
    return min(beats[writer].at for writer in expected)


def _controllers(now: datetime, runs: Mapping[str, TaskRun], overdue: Sequence[OverdueTask]) -> list[BoardController]:
    late, last, waiting = {one.task for one in overdue}, _last_actions(), _waiting()
    return [
        BoardController(
            line=line,
            run=runs.get(TASK_OF[line.name]),
            is_overdue=TASK_OF[line.name] in late,
            last=last.get(line.name),
            waiting=waiting.get(line.name, ()),
        )
        for line in controller_lines(now)
    ]


def _last_actions() -> Mapping[str, ControlAction]:
    """Return the newest entry of each controller in the control audit; one query for each."""
    newest = {name: ControlAction.objects.filter(controller=name).order_by("-id").first() for name in Controller.values}
    return {name: row for name, row in newest.items() if row is not None}


def _waiting() -> Mapping[str, Sequence[str]]:
    """Return the work that waits for each controller, in words; three queries."""
    unready = PipeRevision.objects.filter(state__in=[PipeRevision.State.REQUESTED, PipeRevision.State.RAMPING])
    revisions = list(unready.select_related("pipe").defer("spec").order_by("created_at")[: MOST_NEXT + 1])
    words = [f"{row.pipe.name} @{row.number}: {row.state_reason or row.state}" for row in revisions[:MOST_NEXT]]
    if len(revisions) > MOST_NEXT:
        words.append(f"and {unready.count() - MOST_NEXT} more revisions")
    ended = (RolloutStep.State.DONE, RolloutStep.State.RETURNED)
    steps = RolloutStep.objects.filter(rollout__state__in=Rollout.OPEN).exclude(state__in=ended)
    rollout = [
        f"release {step.rollout.release_id} on {step.place}: {step.why or step.state}"
        for step in steps.select_related("rollout").order_by("number")[:MOST_NEXT]
    ]
    return {Controller.PROVISION: words, Controller.DEPLOY: rollout}


def _oldest() -> DestinationHealth | None:
    """Return the destination with the oldest message that waits for transmit or a retry, of all tenants."""
    rows = DestinationHealth.objects.exclude(oldest_at=None).select_related("destination__pipe__tenant")
    return rows.order_by("oldest_at").first()
