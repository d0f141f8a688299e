"""What the Provisioner's actions do. Each may be done again, by two at once, and be cut short anywhere."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import structlog
from django.db import transaction
from django.db.models import F, QuerySet
from msgspec import Struct

from controlplane.compute.port import Compute, ComputeError, Desired
from controlplane.control_topic import ControlTopic
from controlplane.leases import note
from controlplane.provisioner.changing import changing
from controlplane.provisioner.decide import (
    Action,
    EnsureTopics,
    GoLive,
    MarkPublished,
    Place,
    Publish,
    RaiseShare,
    RollBack,
    StartRamp,
    Stop,
    Submit,
    Supersede,
    Wait,
)
from controlplane.provisioner.records import desired_records
from controlplane.settings import ControlSettings
from controlplane.topics import (
    FoundTopic,
    GroupIsRunningError,
    TopicAdmin,
    cluster_plans,
    first_readers,
)
from dataplane.names import QUERY_INPUTS, Purpose
from dataplane.spec import TopicDestination
from dataplane.tables.records import DestinationRecord, Record
from mgmt.models import Cell, Pipe, PipeRevision, Ramp, Topic
from mgmt.provisioning.topics import TopicPlan, TopicShape, cell_plans, output_plan
from mgmt.queries.cells import generation_of, passed_at
from mgmt.services import RampIsOver, begin_ramp, finish_ramp, raise_share, roll_back_ramp

State = PipeRevision.State
log = structlog.get_logger(__name__)


class Change(NamedTuple):
    """One change to a cell: what it is called, what makes it (False: it was made already), and how it is noted.

    What goes back is protective: an unstable cell does not stop it.
    """

    action: str
    make: Callable[[PipeRevision, datetime], bool]
    outcome: str = "done"
    reason: str = ""

    @property
    def undoes(self) -> bool:
        """Whether it takes back what was done."""
        return self.outcome == "rolled back"


class Hands(Struct):
    """What acting needs.

    problems: cells that must not be touched, and why, as found by the last check
    refused:  cells for which compute did not do what this tick asked, and why
    """

    settings: ControlSettings
    topics: TopicAdmin
    control: ControlTopic
    compute: Compute
    problems: dict[str, str]
    refused: dict[str, str] = {}


def act(hands: Hands, action: Action, now: datetime) -> None:
    """Do one action."""
    match action:
        case Place():
            place_pipe(pipe=action.pipe, cell=action.cell, by=action.by)
        case EnsureTopics():
            ensure_cell_topics(hands, cell=action.cell)
        case Publish():
            publish(hands, keys=action.keys)
        case Submit():
            submit(hands, action.desired)
        case Stop():
            stop(hands, cell=action.cell)
        case MarkPublished():
            PipeRevision.objects.filter(id=action.revision).update(published_offset=action.offset)
        case StartRamp():
            change_cell(action.revision, Change("start-ramp", partial(start_ramp, share=action.share)), now)
        case RaiseShare():
            change_cell(action.revision, Change("raise-share", partial(_raise_share, action=action)), now)
        case RollBack():
            back = Change("roll-back", partial(_roll_back, action=action), "rolled back", action.reason)
            change_cell(action.revision, back, now)
        case GoLive():
            change_cell(action.revision, Change("go-live", partial(go_live, figures=action.figures)), now)
        case Supersede():
            fail_revision(revision=action.revision, reason=f"revision {action.by} overtook it before it was live")
        case Wait():
            say_why(action, now)


def submit(hands: Hands, desired: Desired) -> None:
    """Ask compute for it."""
    if _asked(hands, desired.cell, partial(hands.compute.submit, desired)):
        log.info("submitted", cell=desired.cell, epoch=desired.epoch)


def stop(hands: Hands, *, cell: str) -> None:
    """Ask compute for no application of the cell: its lanes drain before it ends."""
    if _asked(hands, cell, partial(hands.compute.stop, cell)):
        log.info("stopped", cell=cell)


def _asked(hands: Hands, cell: str, ask: Callable[[], None]) -> bool:
    """That compute does not answer is the trouble of this cell alone, and the next tick asks again."""
    try:
        ask()
    except ComputeError as exc:
        hands.refused[cell] = f"waiting for compute: {exc}"
        log.warning("compute does not do it", cell=cell, error=str(exc))
        return False
    return True


def place_pipe(*, pipe: str, cell: str, by: str) -> None:
    """Put the pipe on the cell, unless somebody has placed it."""
    if Pipe.objects.filter(id=pipe, cell=None).update(cell=cell, version=F("version") + 1):
        log.info("placed", pipe=pipe, cell=cell, by=by)


def ensure_cluster_topics(hands: Hands) -> None:
    """The topics all cells share."""
    hands.topics.ensure(cluster_plans(hands.settings.topics))


def ensure_cell_topics(hands: Hands, *, cell: str) -> None:
    """Make the cell's topics and bind them; those that are bound already must be what they were.

    First offsets are committed before the rows are: a bound topic always has them. A cell that was made by an earlier
    release gets the topics that it lacks in the same way.
    """
    generation = generation_of(cell)
    plans = cell_plans(cell, generation, hands.settings.topics)
    bound = {topic.name: topic for topic in Topic.objects.filter(cell=cell)}
    found = hands.topics.ensure(plan for plan in plans.values() if plan.name not in bound)
    found |= hands.topics.find(bound)
    problem = _replaced(bound, found)
    if problem:
        hands.problems[cell] = problem
        log.error("topics are not those that were made", cell=cell, problem=problem)
        return
    hands.problems.pop(cell, None)
    readers = first_readers(plans, cell).items()
    of_lanes = [name for name, topic in bound.items() if topic.purpose not in QUERY_INPUTS.values()]
    try:
        hands.topics.commit_first_offsets(
            {group: [found[plan.name] for plan in read] for group, read in readers}, passed_at(of_lanes)
        )
    except GroupIsRunningError as exc:  # lanes of an earlier release: new topics are bound when they have ended
        log.warning("topics wait for lanes to end", cell=cell, reason=str(exc))
        return
    _bind(cell, generation, {purpose: found[plan.name] for purpose, plan in plans.items() if plan.name not in bound})


def _replaced(bound: dict[str, Topic], found: dict[str, FoundTopic]) -> str:
    for name, row in bound.items():
        if name not in found:
            return f"topic {name} was deleted; what it held is lost"
        if found[name].topic_id != row.topic_id:
            return f"topic {name} was deleted and made anew; offsets of the old one do not fit it"
    return ""


def _bind(cell: str, generation: int, topics: dict[Purpose, FoundTopic]) -> None:
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


def publish(hands: Hands, *, keys: list[str]) -> None:
    """Write the records of `keys`; what cannot be built fails its revision instead of stopping the others.

    A destination that is a topic has that topic before any lane hears of it.
    """
    built = desired_records(keys)
    for key, why in built.broken.items():
        _break(key, why)
    hands.topics.ensure(output_plans(built.records, hands.settings.topics))
    if built.records:
        hands.control.publish(built.records)
        log.info("published", records=len(built.records))


def output_plans(records: Iterable[Record], shape: TopicShape) -> list[TopicPlan]:
    """The topics that these records' destinations are."""
    return [
        output_plan(record.pipe, record.name, record.to, shape)
        for record in records
        if isinstance(record, DestinationRecord) and isinstance(record.to, TopicDestination)
    ]


def _break(key: str, why: str) -> None:
    kind, _, name = key.partition("/")
    log.error("record cannot be built", key=key, why=why)
    if kind == "plan":
        pipe, _, number = name.partition("@")
        PipeRevision.objects.filter(pipe_id=pipe, number=int(number)).update(state=State.FAILED, state_reason=why[:300])


def change_cell(revision: int, change: Change, now: datetime) -> None:
    """Make the change under the cell's lease, and note it."""
    row = PipeRevision.objects.select_related("pipe").get(id=revision)
    what = f"{change.action} of revision {row.number} of {row.pipe_id}"
    with changing({str(row.pipe.cell_id): change.undoes}, what, now) as ours:
        if ours and change.make(row, now):
            _note(row, change.action, change.outcome, now, change.reason)


def _note(row: PipeRevision, action: str, outcome: str, now: datetime, reason: str = "") -> None:
    detail = {"revision": row.number}
    cell, pipe = row.pipe.cell_id, row.pipe_id
    note("provision", action, outcome=outcome, at=now, cell=cell, pipe=pipe, reason=reason, detail=detail)


def start_ramp(row: PipeRevision, now: datetime, share: int) -> bool:
    """requested -> ramping: the pipe's record, at its next version, gives it its share of the traffic."""
    return begin_ramp(revision=row, share=share, now=now)


def _raise_share(row: PipeRevision, now: datetime, action: RaiseShare) -> bool:
    return raise_share(ramp=_ramp(row), share=action.share, figures=action.figures, now=now)


def _roll_back(row: PipeRevision, now: datetime, action: RollBack) -> bool:
    """ramping -> failed, unless a person was faster."""
    try:
        roll_back_ramp(ramp=_ramp(row), reason=action.reason, figures=action.figures, now=now)
    except RampIsOver as exc:
        log.info("not rolled back", revision=action.revision, reason=str(exc))
        return False
    return True


def go_live(row: PipeRevision, now: datetime, figures: Mapping[str, Any]) -> bool:
    """ramping -> live: the one before is retired, and destinations take over the new one's addresses."""
    if row.state != State.RAMPING or not finish_ramp(revision=row, figures=figures, now=now):
        return False
    log.info("live", pipe=row.pipe_id, revision=row.number)
    return True


def say_why(wait: Wait, now: datetime) -> None:
    """What a revision waits for, on its row; that the interlocks refused it is noted for the audit, too."""
    if open_revisions().filter(id=wait.revision).update(state_reason=wait.reason) and wait.refused:
        row = PipeRevision.objects.select_related("pipe").get(id=wait.revision)
        _note(row, "ramp", "refused", now, wait.reason)


def _ramp(row: PipeRevision) -> Ramp:
    return Ramp.objects.select_related("revision__pipe", "stable").get(revision=row)


def fail_revision(*, revision: int, reason: str) -> None:
    """End an open revision, saying why."""
    open_revisions().filter(id=revision).update(state=State.FAILED, state_reason=reason[:300])


def open_revisions() -> QuerySet[PipeRevision]:
    """Revisions on their way to live."""
    return PipeRevision.objects.filter(state__in=[State.REQUESTED, State.RAMPING])
