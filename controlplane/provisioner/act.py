"""Executes the Provisioner's actions. Each is idempotent, safe to run twice at once, and safe to interrupt anywhere."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, Required, TypedDict, Unpack

import structlog
from django.db import transaction
from django.db.models import F, QuerySet
from msgspec import Struct

from controlplane.compute.port import Compute, ComputeError, DesiredApplication
from controlplane.control_topic import ControlTopic
from controlplane.leases import note
from controlplane.provisioner.cell_change import changing
from controlplane.provisioner.decide import (
    AnnotateRevision,
    EnsureTopics,
    GoLive,
    MarkPublished,
    PlacePipe,
    ProvisionerAction,
    PublishRecords,
    RaiseShare,
    RollBack,
    StartRamp,
    StopApplication,
    SubmitApplication,
    SupersedeRevision,
)
from controlplane.provisioner.records import desired_records
from controlplane.settings import ControlSettings
from controlplane.topics import (
    ExistingTopic,
    GroupIsRunningError,
    TopicCreator,
    cluster_plans,
    first_readers,
)
from dataplane.names import QUERY_INPUTS, Purpose
from dataplane.spec import TopicDestination
from dataplane.tables.records import DestinationRecord, Record
from mgmt.cells.queries.cells import generation_of, passed_at, shape_of
from mgmt.models import Cell, ControlAction, Pipe, PipeRevision, Ramp, Topic
from mgmt.pipes.services.revisions import RevisionState
from mgmt.pipes.topics import TopicPlan, TopicShape, cell_plans, output_plan
from mgmt.services import RampCompleteError, begin_ramp, finish_ramp, raise_share, roll_back_ramp

log = structlog.get_logger(__name__)


class _AuditFields(TypedDict, total=False):
    outcome: Required[ControlAction.Outcome]
    refusal: str
    reason: str


class CellChange(NamedTuple):
    """One change to a cell: its name, the function that makes it (False: it was made already), and its audit outcome.

    A rollback is protective: an unstable cell does not stop it.
    """

    action: str
    make: Callable[[PipeRevision, datetime], bool]
    outcome: ControlAction.Outcome = ControlAction.Outcome.DONE
    reason: str = ""

    @property
    def undoes(self) -> bool:
        """True if the change is a rollback."""
        return self.outcome == ControlAction.Outcome.ROLLED_BACK


class Effects(Struct):
    """Clients through which actions take effect, and the cells that they must leave alone.

    problems: cells that must not be changed, and why, as found by the last check
    refused:  cells for which compute refused a request of this tick, and why
    """

    settings: ControlSettings
    topics: TopicCreator
    control: ControlTopic
    compute: Compute
    problems: dict[str, str]
    refused: dict[str, str] = {}


def act(effects: Effects, action: ProvisionerAction, now: datetime) -> None:
    """Execute one action. Raises ControlTopicError, TopicsNotReadyError or, without Kafka, KafkaException."""
    match action:
        case PlacePipe():
            place_pipe(pipe=action.pipe, cell=action.cell, by=action.by)
        case EnsureTopics():
            ensure_cell_topics(effects, cell=action.cell)
        case PublishRecords():
            publish(effects, keys=action.keys, now=now)
        case SubmitApplication():
            submit(effects, action.desired)
        case StopApplication():
            stop(effects, cell=action.cell)
        case MarkPublished():
            PipeRevision.objects.filter(id=action.revision).update(published_offset=action.offset)
        case StartRamp():
            change_cell(action.revision, CellChange("start-ramp", partial(start_ramp, share=action.share)), now)
        case RaiseShare():
            change_cell(action.revision, CellChange("raise-share", partial(_raise_share, action=action)), now)
        case RollBack():
            rollback = CellChange(
                "roll-back", partial(_roll_back, action=action), ControlAction.Outcome.ROLLED_BACK, action.reason
            )
            change_cell(action.revision, rollback, now)
        case GoLive():
            change_cell(action.revision, CellChange("go-live", partial(go_live, figures=action.figures)), now)
        case SupersedeRevision():
            fail_revision(revision=action.revision, reason=f"superseded by revision {action.by} before it was live")
        case AnnotateRevision():
            annotate_revision(action, now)


def submit(effects: Effects, desired: DesiredApplication) -> None:
    """Ask compute to run this application."""
    if _request(effects, desired.cell, partial(effects.compute.submit, desired)):
        log.info("submitted", cell=desired.cell, epoch=desired.epoch)


def stop(effects: Effects, *, cell: str) -> None:
    """Ask compute to end the cell's application: its lanes drain before it exits."""
    if _request(effects, cell, partial(effects.compute.stop, cell)):
        log.info("stopped", cell=cell)


def _request(effects: Effects, cell: str, request: Callable[[], None]) -> bool:
    """Send a request to compute. A failure concerns this cell alone, and the next tick asks again."""
    try:
        request()
    except ComputeError as exc:
        effects.refused[cell] = f"waiting for compute: {exc}"
        log.warning("compute request failed", cell=cell, error=str(exc))
        return False
    return True


def place_pipe(*, pipe: str, cell: str, by: str) -> None:
    """Place the pipe on the cell, unless it has been placed meanwhile."""
    if Pipe.objects.filter(id=pipe, cell=None).update(cell=cell, version=F("version") + 1):
        log.info("placed", pipe=pipe, cell=cell, by=by)


def ensure_cluster_topics(effects: Effects) -> None:
    """Make the topics that all cells share."""
    effects.topics.ensure(cluster_plans(effects.settings.topics))


def ensure_cell_topics(effects: Effects, *, cell: str) -> None:
    """Make the cell's topics and bind them to Kafka's ids; bound topics must still have the ids that they had.

    First offsets are committed before the rows are written, so a bound topic always has them. A cell made by an earlier
    release gets its missing topics in the same way.
    """
    generation = generation_of(cell)
    plans = cell_plans(cell, generation, shape_of(cell, effects.settings.topics))
    bound = {topic.name: topic for topic in Topic.objects.filter(cell=cell)}
    found = effects.topics.ensure(plan for plan in plans.values() if plan.name not in bound)
    found |= effects.topics.find(bound)
    problem = _replaced(bound, found)
    if problem:
        effects.problems[cell] = problem
        log.error("topics deleted or replaced", cell=cell, problem=problem)
        return
    effects.problems.pop(cell, None)
    readers = first_readers(plans, cell).items()
    of_lanes = [name for name, topic in bound.items() if topic.purpose not in QUERY_INPUTS.values()]
    try:
        effects.topics.commit_first_offsets(
            {group: [found[plan.name] for plan in read] for group, read in readers}, passed_at(of_lanes)
        )
    except GroupIsRunningError as exc:  # lanes of an earlier release: bind the new topics when they have ended
        log.warning("topics wait for lanes to end", cell=cell, reason=str(exc))
        return
    _bind(cell, generation, {purpose: found[plan.name] for purpose, plan in plans.items() if plan.name not in bound})


def _replaced(bound: dict[str, Topic], found: dict[str, ExistingTopic]) -> str:
    for name, row in bound.items():
        if name not in found:
            return f"topic {name} was deleted; what it held is lost"
        if found[name].topic_id != row.topic_id:
            return f"topic {name} was deleted and recreated; offsets of the old topic are not valid for it"
    return ""


def _bind(cell: str, generation: int, topics: dict[Purpose, ExistingTopic]) -> None:
    if not topics:
        return
    with transaction.atomic():
        for purpose, topic in topics.items():
            Topic.objects.get_or_create(
                name=topic.name,
                defaults={
                    "cell_id": cell,
                    "purpose": purpose,
                    "generation": generation,
                    "topic_id": topic.topic_id,
                    "partitions": topic.partitions,
                },
            )
        Cell.objects.filter(id=cell).update(version=F("version") + 1)
    log.info("topics bound", cell=cell, topics=len(topics))


def publish(effects: Effects, *, keys: list[str], now: datetime) -> None:
    """Publish the records of `keys`; a plan that cannot be built fails its revision instead of stopping the others.

    The topic of a topic destination is made before any lane can read the destination's record.
    """
    built = desired_records(keys)
    for key, why in built.broken.items():
        _reject(key, why, now)
    effects.topics.ensure(output_plans(built.records, effects.settings.topics))
    if built.records:
        effects.control.publish(built.records)
        log.info("published", records=len(built.records))


def output_plans(records: Iterable[Record], shape: TopicShape) -> list[TopicPlan]:
    """Return the plans of the topics that these records name as destinations."""
    return [
        output_plan(record.pipe, record.name, record.to, shape)
        for record in records
        if isinstance(record, DestinationRecord) and isinstance(record.to, TopicDestination)
    ]


def _reject(key: str, why: str, now: datetime) -> None:
    kind, _, name = key.partition("/")
    log.error("record cannot be built", key=key, why=why)
    if kind == "plan":
        pipe, _, number = name.partition("@")
        rows = PipeRevision.objects.filter(pipe_id=pipe, number=int(number)).exclude(state=RevisionState.FAILED)
        row = rows.select_related("pipe").first()
        if row and rows.update(state=RevisionState.FAILED, state_reason=why[:300]):
            _note(row, "publish", now, outcome=ControlAction.Outcome.FAILED, reason=why)


def change_cell(revision: int, change: CellChange, now: datetime) -> None:
    """Make the change under the cell's lease and write it to the control audit; do nothing without the lease."""
    row = PipeRevision.objects.select_related("pipe").get(id=revision)
    what = f"{change.action} of revision {row.number} of {row.pipe_id}"
    with changing({str(row.pipe.cell_id): change.undoes}, what, now) as ours:
        if ours and change.make(row, now):
            _note(row, change.action, now, outcome=change.outcome, reason=change.reason)


def _note(row: PipeRevision, action: str, now: datetime, **how: Unpack[_AuditFields]) -> None:
    note("provision", action, at=now, cell=row.pipe.cell_id, pipe=row.pipe_id, detail={"revision": row.number}, **how)


def start_ramp(row: PipeRevision, now: datetime, share: int) -> bool:
    """Move requested -> ramping: the next version of the pipe's record gives the revision its share of the keys."""
    return begin_ramp(revision=row, share=share, now=now)


def _raise_share(row: PipeRevision, now: datetime, action: RaiseShare) -> bool:
    return raise_share(ramp=_ramp(row), share=action.share, figures=action.figures, now=now)


def _roll_back(row: PipeRevision, now: datetime, action: RollBack) -> bool:
    """Move ramping -> failed, unless a person completed the ramp first."""
    try:
        roll_back_ramp(ramp=_ramp(row), reason=action.reason, figures=action.figures, now=now)
    except RampCompleteError as exc:
        log.info("not rolled back", revision=action.revision, reason=str(exc))
        return False
    return True


def go_live(row: PipeRevision, now: datetime, figures: Mapping[str, Any]) -> bool:
    """Move ramping -> live: retire the earlier revision and apply the new one's addresses to the destinations."""
    if row.state != RevisionState.RAMPING or not finish_ramp(revision=row, figures=figures, now=now):
        return False
    log.info("live", pipe=row.pipe_id, revision=row.number)
    return True


def annotate_revision(wait: AnnotateRevision, now: datetime) -> None:
    """Store on the revision's row what it waits for; a refusal is recorded in the control audit, too."""
    if open_revisions().filter(id=wait.revision).update(state_reason=wait.reason) and wait.refusal:
        row = PipeRevision.objects.select_related("pipe").get(id=wait.revision)
        outcome = ControlAction.Outcome.REFUSED
        _note(row, "ramp", now, outcome=outcome, refusal=wait.refusal.kind, reason=wait.refusal.why)


def _ramp(row: PipeRevision) -> Ramp:
    return Ramp.objects.select_related("revision__pipe", "stable").get(revision=row)


def fail_revision(*, revision: int, reason: str) -> None:
    """End an open revision as failed, with the reason."""
    open_revisions().filter(id=revision).update(state=RevisionState.FAILED, state_reason=reason[:300])


def open_revisions() -> QuerySet[PipeRevision]:
    """Return the revisions that are requested or ramping."""
    return PipeRevision.objects.filter(state__in=[RevisionState.REQUESTED, RevisionState.RAMPING])
