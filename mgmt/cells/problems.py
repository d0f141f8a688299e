"""Problems of the platform on the status board: each with its start, who is affected, and the next step. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from mgmt.cells.queries.overdue_tasks import OverdueTask
from mgmt.models import Cell, CellVerdict, Incident, KafkaCheck, TaskRun

# A shorter wait is a broker election or a restart; an entry for each would soon be ignored.
WAITS_LONG: Final = timedelta(minutes=1)
# Incidents that the board shows by their source: overdue tasks, and the verdict on each cell.
SHOWN_OTHERWISE: Final = frozenset({"control-plane-silent", "lane-blocked"})


class ProblemKind(StrEnum):
    """Kind of a problem; those of cells are the kinds of findings of a verdict."""

    TASK_OVERDUE = "task-overdue"
    TASK_FAILED = "task-failed"
    TASK_WAITING = "task-waiting"
    KAFKA_UNREACHABLE = "kafka-unreachable"
    KAFKA_DEGRADED = "kafka-degraded"
    INGEST_SHORT = "ingest-short"
    CELL_LOSS = "loss"
    CELL_FAILING = "failing"
    CELL_BLOCKED = "blocked"
    CELL_SILENT = "silent"
    CELL_BEHIND = "behind"
    CELL_UNKNOWN = "unknown"
    CELL_RECOVERING = "recovering"
    CELL_NOT_STARTED = "not-started"
    INCIDENT = "incident"


NEXT_STEPS: Final[Mapping[ProblemKind, str]] = {
    ProblemKind.TASK_OVERDUE: "Check Redis, beat and the workers. Messages still flow, and due work is kept.",
    ProblemKind.TASK_FAILED: "Read the error in the worker's log. The task is tried again at its next run.",
    ProblemKind.TASK_WAITING: "Check Kafka: the task continues as soon as the brokers respond.",
    ProblemKind.KAFKA_UNREACHABLE: "Start the brokers, or repair the network. Ingest returns 503 until then.",
    ProblemKind.KAFKA_DEGRADED: "Start the missing brokers, then watch the replicas catch up. Restart no other broker.",
    ProblemKind.INGEST_SHORT: "Read the log of the missing replicas. If others run, they accept events meanwhile.",
    ProblemKind.CELL_LOSS: "Change nothing on the cell. Open the lost messages, and compare the nodes.",
    ProblemKind.CELL_FAILING: (
        "Read the lane's exception in the driver's log. If the release is the cause, roll back on Releases, or roll "
        "out a corrected one also on unstable cells."
    ),
    ProblemKind.CELL_BLOCKED: (
        "If a topic refuses records, repair its size limit, disk or permissions; a lost offset needs "
        "`manage.py lane_offsets`."
    ),
    ProblemKind.CELL_SILENT: "Read the driver's log. The keeper starts a lane that ended; check memory and disk.",
    ProblemKind.CELL_BEHIND: "Open Scaling: raise the maximum of lanes, or migrate the busiest pipe.",
    ProblemKind.CELL_UNKNOWN: "Check Kafka and the Observer: no process has sent a heartbeat to them.",
    ProblemKind.CELL_RECOVERING: "Wait: nothing is wrong at the moment, and the verdict follows.",
    ProblemKind.CELL_NOT_STARTED: (
        "Check that the keeper runs. If the cell has no release, run `manage.py release`: it builds one and assigns it."
    ),
    ProblemKind.INCIDENT: "Check what these tenants share: the network, DNS, proxies, and the last release.",
}


@dataclass(frozen=True)
class Affected:
    """Tenants and pipes that a problem affects."""

    tenants: int
    pipes: int


@dataclass(frozen=True)
class Problem:
    """One problem. `since` is None if its start is unknown; `affected` None if it affects no messages yet.

    route, args, anchor: the page of the console, and the place on it, that shows more
    """

    kind: ProblemKind
    what: str
    since: datetime | None
    affected: Affected | None
    route: str
    args: tuple[str, ...] = ()
    anchor: str = ""

    @property
    def todo(self) -> str:
        """The next step for staff."""
        return NEXT_STEPS[self.kind]


def of_tasks(overdue: Iterable[OverdueTask], runs: Mapping[str, TaskRun], now: datetime) -> Iterable[Problem]:
    """Yield overdue tasks, and those that failed, or waited for long, at their last run."""
    late = {one.task: one.since for one in overdue}
    for task, since in late.items():
        if task in runs and runs[task].outcome != TaskRun.Outcome.FAILED:
            yield Problem(ProblemKind.TASK_OVERDUE, f"{task} has not run", since, None, "staff")
    for task, run in sorted(runs.items()):
        if run.outcome == TaskRun.Outcome.FAILED:
            yield Problem(ProblemKind.TASK_FAILED, f"{task} fails: {run.said}", run.since, None, "staff")
        elif run.outcome == TaskRun.Outcome.WAITING and now - run.since > WAITS_LONG and task not in late:
            yield Problem(ProblemKind.TASK_WAITING, f"{task} is {run.said}"[:120], run.since, None, "staff")


def of_kafka(check: KafkaCheck | None, everyone: Affected) -> Iterable[Problem]:
    """Yield the problems of the brokers; they affect every pipe."""
    if check is None or check.state == KafkaCheck.State.HEALTHY:
        return
    if check.state == KafkaCheck.State.UNREACHABLE:
        what = f"no broker responds: {check.error}"
        yield Problem(ProblemKind.KAFKA_UNREACHABLE, what, check.since, everyone, "board", anchor="kafka")
        return
    gone = [str(one["address"] or one["id"]) for one in check.brokers if not one["alive"]]
    parts = [
        f"broker {', '.join(gone)} is missing" if gone else "",
        f"{check.leaderless} partitions have no leader" if check.leaderless else "",
        f"{check.under_replicated} partitions are under-replicated" if check.under_replicated else "",
    ]
    affected = everyone if check.leaderless else None
    what = "; ".join(filter(None, parts))
    yield Problem(ProblemKind.KAFKA_DEGRADED, what, check.since, affected, "board", anchor="kafka")


def of_ingest(wanted: int, running: int, everyone: Affected, *, is_observed: bool) -> Iterable[Problem]:
    """Yield the lack of ingest replicas; customers notice it once none is left.

    is_observed: heartbeats are stored; without that, nothing is known of any replica
    """
    if is_observed and running < wanted:
        what = f"{running} of {wanted} ingest replicas run"
        affected = None if running else everyone
        yield Problem(ProblemKind.INGEST_SHORT, what, None, affected, "scale_group", ("ingest", "ingest"))


def of_cell(cell: Cell, verdict: CellVerdict | None, affected: Affected, *, is_reporting: bool) -> Iterable[Problem]:
    """Yield the problem of a cell that is not stable: all of its reasons, with the next step for the most severe.

    `is_reporting`: all of its processes have sent a heartbeat. An awake cell without one and without a verdict has
    not started.
    """
    if verdict is None and affected.pipes and not (is_reporting or cell.is_asleep):
        what = f"cell {cell.id} has not started: some of its lanes have never sent a heartbeat"
        yield Problem(ProblemKind.CELL_NOT_STARTED, what, None, affected, "cell", (cell.id,))
    if verdict is None or verdict.state == CellVerdict.State.STABLE:
        return
    unknown = verdict.state == CellVerdict.State.UNKNOWN
    kind = ProblemKind(next(iter(verdict.kinds), "unknown" if unknown else "recovering"))
    reasons = "; ".join(verdict.reasons) or "no reason is known"
    lossy = kind == ProblemKind.CELL_LOSS
    yield Problem(
        kind=kind,
        what=f"cell {cell.id} is {verdict.state}: {reasons}",
        since=verdict.since,
        affected=affected,
        route="all_losses" if lossy else "cell",
        args=() if lossy else (cell.id,),
    )


def of_incidents(incidents: Iterable[Incident], words: Mapping[str, str]) -> Iterable[Problem]:
    """Yield the causes that are open for many tenants, whatever their destinations are. `words`: of a cause."""
    for row in incidents:
        if row.cause not in SHOWN_OTHERWISE:
            what = f"{row.tenants} tenants have alerts with one cause: {words.get(row.cause, row.cause)}"
            yield Problem(ProblemKind.INCIDENT, what, row.opened_at, Affected(row.tenants, 0), "board", anchor="causes")


def in_order(problems: Sequence[Problem]) -> list[Problem]:
    """Return the problems that affect most tenants first, and of those the oldest first."""
    return sorted(
        problems,
        key=lambda one: (-(one.affected.tenants if one.affected else 0), one.since.timestamp() if one.since else 0.0),
    )
