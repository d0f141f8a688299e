"""What would be made of a spec that is not saved yet, by the decisions that the Provisioner itself goes by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from dataplane.names import LANE_KINDS, QUERY_INPUTS
from dataplane.plan.queries import is_asked
from dataplane.spec import HttpDestination, PipeSpec, TopicDestination
from mgmt.models import AlertChannel, Cell, Pipe, PipeRevision, Tenant, Topic
from mgmt.provisioning.placing import place
from mgmt.provisioning.ramps import RampPolicy, first_share
from mgmt.provisioning.settings import placing_policy, ramp_policy, topic_shape
from mgmt.provisioning.topics import TopicPlan, cell_plans, output_plan
from mgmt.queries.cells import generation_of
from mgmt.queries.placing import room_for
from mgmt.queries.ramps import recently_taken

PIPE_TO_COME: Final = "<id>"  # in the names of topics, while the pipe has none
_OPEN: Final = (PipeRevision.State.REQUESTED, PipeRevision.State.RAMPING)


@dataclass(frozen=True)
class Placing:
    """The cell, "" if there is none to be had.

    load: how many pipes each cell has now on which this one may be placed
    by:   what it is chosen by (mgmt.provisioning.placing.Choice), "" if it has been
    """

    cell: str
    by: str
    load: Mapping[str, int]
    lanes: Mapping[str, int]

    @property
    def is_there(self) -> bool:
        """Whether the pipe has its cell already."""
        return bool(self.cell) and not self.by


@dataclass(frozen=True)
class TopicLine:
    """A topic as it will be. `kept_s` is None for one that is compacted and keeps the newest of each key."""

    name: str
    partitions: int
    copies: int
    kept_s: int | None
    exists: bool


@dataclass(frozen=True)
class RampPlan:
    """How it comes live: at `shares` of the keys, one after another; empty if it takes all of them at once.

    recent: what the pipe took within the policy's `recently`
    ends:   the revision on its way that this one ends
    """

    live: int | None
    shares: Sequence[int]
    recent: int
    ends: int | None
    policy: RampPolicy


@dataclass(frozen=True)
class HttpLine:
    """A destination that is posted to, and what bounds it."""

    name: str
    to: HttpDestination


@dataclass(frozen=True)
class Making:
    """All of it."""

    placing: Placing
    topics: Sequence[TopicLine]
    outputs: Sequence[TopicLine]
    queries: Sequence[tuple[str, bool]]
    ramp: RampPlan
    keys: Sequence[str]
    secrets: Sequence[str]
    posted: Sequence[HttpLine]
    told: Sequence[AlertChannel]

    @property
    def to_make(self) -> int:
        """How many of the cell's topics are not there yet."""
        return sum(not topic.exists for topic in self.topics)

    @property
    def asked_queries(self) -> list[str]:
        """The queries beside the lanes that the spec asks for."""
        return [name for name, asked in self.queries if asked]


def making_of(*, tenant: Tenant, spec: PipeSpec, pipe: Pipe | None, now: datetime) -> Making:
    """What is made when this is saved: a new pipe, or the next revision of one."""
    placing = _placing(tenant, pipe, now)
    known = _known_names(pipe)
    posted = [HttpLine(name, to) for name, to in spec.destinations.items() if isinstance(to, HttpDestination)]
    return Making(
        placing=placing,
        topics=_topics(placing.cell),
        outputs=_outputs(pipe, spec, known),
        queries=[(name, is_asked(name, spec)) for name in QUERY_INPUTS],
        ramp=_ramp(pipe, now),
        keys=list(spec.sources) if pipe is None else [],
        secrets=[line.name for line in posted] if pipe is None else [],
        posted=posted,
        told=list(AlertChannel.objects.filter(tenant=tenant).order_by("created_at")),
    )


def _placing(tenant: Tenant, pipe: Pipe | None, now: datetime) -> Placing:
    """As controlplane.provisioner.decide places it."""
    if pipe is not None and pipe.cell_id is not None:
        return Placing(pipe.cell_id, "", {}, _lanes(pipe.cell_id))
    policy = placing_policy()
    room = room_for([(PIPE_TO_COME, tenant.id)], policy, now)
    choice = place(room.pipes, room.cells, policy, room.dedicated).get(PIPE_TO_COME)
    if choice is None:
        return Placing("", "", {}, {})
    load = {cell.id: cell.pipes for cell in room.cells if cell.id in choice.among}
    return Placing(choice.cell, choice.by, load, _lanes(choice.cell))


def _lanes(cell: str) -> dict[str, int]:
    lanes = Cell.objects.get(id=cell).lanes
    return {kind: lanes[kind] for kind in LANE_KINDS if lanes.get(kind)}


def _topics(cell: str) -> list[TopicLine]:
    if not cell:
        return []
    bound = set(Topic.objects.filter(cell=cell).values_list("name", flat=True))
    return [_line(plan, plan.name in bound) for plan in cell_plans(cell, generation_of(cell), topic_shape()).values()]


def _outputs(pipe: Pipe | None, spec: PipeSpec, known: set[str]) -> list[TopicLine]:
    """Topics of destinations; those of destinations that the pipe has had are there."""
    shape = topic_shape()
    topics = {name: to for name, to in spec.destinations.items() if isinstance(to, TopicDestination)}
    pipe_id = pipe.id if pipe is not None else PIPE_TO_COME
    return [_line(output_plan(pipe_id, name, to, shape), name in known) for name, to in topics.items()]


def _known_names(pipe: Pipe | None) -> set[str]:
    if pipe is None:
        return set()
    topics = pipe.destinations.filter(config__type="topic")
    return set(topics.values_list("name", flat=True))


def _line(plan: TopicPlan, exists: bool) -> TopicLine:
    kept_ms = int(plan.config["retention.ms"])
    return TopicLine(plan.name, plan.partitions, plan.replication, kept_ms // 1_000 if kept_ms > 0 else None, exists)


def _ramp(pipe: Pipe | None, now: datetime) -> RampPlan:
    """As controlplane.provisioner.decide begins it."""
    policy = ramp_policy()
    there = list(pipe.revisions.filter(state__in=["live", *_OPEN]).values_list("state", "number")) if pipe else []
    live = next((number for state, number in there if state == PipeRevision.State.LIVE), None)
    ends = max((number for state, number in there if state in _OPEN), default=None)
    if pipe is None or live is None:
        return RampPlan(live, (), 0, ends, policy)
    recent = recently_taken([pipe.id], now - policy.recently).get(pipe.id, 0)
    first = first_share(policy, recent)
    return RampPlan(live, [share for share in policy.steps if first and share >= first], recent, ends, policy)
