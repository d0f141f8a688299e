"""Preview of what an unsaved spec would create, by the same decisions as the Provisioner's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from dataplane.names import LANE_KINDS, QUERY_INPUTS
from dataplane.plan.queries import needs_query
from dataplane.spec import HttpDestination, PipeSpec, RemoteDestination, TopicDestination, beginning_of
from mgmt.cells.placement import place
from mgmt.cells.policies import placing_policy, ramp_policy, topic_shape
from mgmt.cells.queries.cells import generation_of, shape_of
from mgmt.cells.queries.placement_inputs import placement_inputs
from mgmt.models import AlertChannel, Cell, Pipe, PipeRevision, Tenant, Topic
from mgmt.pipes.topics import TopicPlan, cell_plans, output_plan
from mgmt.ramps.queries import recently_ramped_units
from mgmt.ramps.schedule import RampPolicy, first_share

PIPE_TO_COME: Final = "<id>"  # placeholder in the names of topics, while the pipe has no id
_QUERY_LABELS: Final = {"bulk": "bulk execution"}  # of the queries whose name is not their label
_OPEN: Final = (PipeRevision.State.REQUESTED, PipeRevision.State.RAMPING)


@dataclass(frozen=True)
class CellPlacement:
    """Cell of the pipe, "" if none is available.

    load: number of pipes on each cell on which this one may be placed
    by:   criterion of the choice (mgmt.cells.placement.PlacementChoice), "" if the pipe is already placed
    """

    cell: str
    by: str
    load: Mapping[str, int]
    lanes: Mapping[str, int]

    @property
    def is_there(self) -> bool:
        """True if the pipe already has its cell."""
        return bool(self.cell) and not self.by


@dataclass(frozen=True)
class TopicPreview:
    """Topic as it will be created. `retention_s`: None if compacted, with the newest of each key."""

    name: str
    partitions: int
    replicas: int
    retention_s: int | None
    exists: bool


@dataclass(frozen=True)
class RampPreview:
    """Ramp of the revision: its `shares` of the keys in order; empty if it takes all keys at once.

    recent: messages that the pipe processed within the policy's `recently`
    ends:   number of the revision, requested or ramping, that this one ends
    """

    live: int | None
    shares: Sequence[int]
    recent: int
    ends: int | None
    policy: RampPolicy


@dataclass(frozen=True)
class RemoteDestinationPlan:
    """Destination with a URL, and its limits."""

    name: str
    to: RemoteDestination


@dataclass(frozen=True)
class BeginningPreview:
    """Destination with a `from`. is_new: it will get the events accepted since; otherwise `from` has no effect."""

    name: str
    beginning: str
    is_new: bool


@dataclass(frozen=True)
class PlanPreview:
    """Everything that saving a spec creates or uses. `queries`: label of each, and True if the spec needs it."""

    placing: CellPlacement
    topics: Sequence[TopicPreview]
    outputs: Sequence[TopicPreview]
    queries: Sequence[tuple[str, bool]]
    ramp: RampPreview
    keys: Sequence[str]
    secrets: Sequence[str]
    posted: Sequence[RemoteDestinationPlan]
    channels: Sequence[AlertChannel]
    beginnings: Sequence[BeginningPreview]

    @property
    def to_make(self) -> int:
        """Number of the cell's topics that do not exist yet."""
        return sum(not topic.exists for topic in self.topics)

    @property
    def asked_queries(self) -> list[str]:
        """Labels of the streaming queries that the spec needs in addition to the lanes."""
        return [label for label, asked in self.queries if asked]


def plan_preview(*, tenant: Tenant, spec: PipeSpec, pipe: Pipe | None, now: datetime) -> PlanPreview:
    """Return the preview of a new pipe (`pipe` is None), or of the next revision of one."""
    placing = _placing(tenant, pipe, now)
    known = _known_names(pipe)
    posted = [
        RemoteDestinationPlan(name, to) for name, to in spec.destinations.items() if isinstance(to, RemoteDestination)
    ]
    return PlanPreview(
        placing=placing,
        topics=_topics(placing.cell),
        outputs=_outputs(pipe, spec, known),
        queries=[(_QUERY_LABELS.get(name, name), needs_query(name, spec)) for name in QUERY_INPUTS],
        ramp=_ramp(pipe, now),
        keys=list(spec.sources) if pipe is None else [],
        secrets=[line.name for line in posted if isinstance(line.to, HttpDestination)] if pipe is None else [],
        posted=posted,
        channels=list(AlertChannel.objects.filter(tenant=tenant).order_by("created_at")),
        beginnings=_beginnings(pipe, spec),
    )


def _beginnings(pipe: Pipe | None, spec: PipeSpec) -> list[BeginningPreview]:
    """Return the destinations that ask for earlier events; those of a pipe without a live revision have none."""
    asked = {name: beginning for name, to in spec.destinations.items() if (beginning := beginning_of(to))}
    live = pipe.revisions.filter(state=PipeRevision.State.LIVE).first() if pipe is not None and asked else None
    is_new = {name: live is not None and name not in live.spec["destinations"] for name in asked}
    return [BeginningPreview(name, beginning, is_new[name]) for name, beginning in asked.items()]


def _placing(tenant: Tenant, pipe: Pipe | None, now: datetime) -> CellPlacement:
    """Place the pipe as controlplane.provisioner.decide does."""
    if pipe is not None and pipe.cell_id is not None:
        return CellPlacement(pipe.cell_id, "", {}, _lanes(pipe.cell_id))
    policy = placing_policy()
    inputs = placement_inputs([(PIPE_TO_COME, tenant.id)], policy, now)
    choice = place(inputs.pipes, inputs.cells, policy, inputs.dedicated).get(PIPE_TO_COME)
    if choice is None:
        return CellPlacement("", "", {}, {})
    load = {cell.id: cell.pipes for cell in inputs.cells if cell.id in choice.among}
    return CellPlacement(choice.cell, choice.by, load, _lanes(choice.cell))


def _lanes(cell: str) -> dict[str, int]:
    lanes = Cell.objects.get(id=cell).lanes
    return {kind: lanes[kind] for kind in LANE_KINDS if lanes.get(kind)}


def _topics(cell: str) -> list[TopicPreview]:
    if not cell:
        return []
    existing = set(Topic.objects.filter(cell=cell).values_list("name", flat=True))
    plans = cell_plans(cell, generation_of(cell), shape_of(cell, topic_shape()))
    return [_line(plan, plan.name in existing) for plan in plans.values()]


def _outputs(pipe: Pipe | None, spec: PipeSpec, known: set[str]) -> list[TopicPreview]:
    """Return the topics of destinations; those of the pipe's existing destinations already exist."""
    shape = topic_shape()
    topics = {name: to for name, to in spec.destinations.items() if isinstance(to, TopicDestination)}
    pipe_id = pipe.id if pipe is not None else PIPE_TO_COME
    return [_line(output_plan(pipe_id, name, to, shape), name in known) for name, to in topics.items()]


def _known_names(pipe: Pipe | None) -> set[str]:
    if pipe is None:
        return set()
    topics = pipe.destinations.filter(config__type="topic")
    return set(topics.values_list("name", flat=True))


def _line(plan: TopicPlan, exists: bool) -> TopicPreview:
    kept_ms = int(plan.config["retention.ms"])
    return TopicPreview(plan.name, plan.partitions, plan.replication, kept_ms // 1_000 if kept_ms > 0 else None, exists)


def _ramp(pipe: Pipe | None, now: datetime) -> RampPreview:
    """Begin the ramp as controlplane.provisioner.decide does."""
    policy = ramp_policy()
    revisions = list(pipe.revisions.filter(state__in=["live", *_OPEN]).values_list("state", "number")) if pipe else []
    live = next((number for state, number in revisions if state == PipeRevision.State.LIVE), None)
    ends = max((number for state, number in revisions if state in _OPEN), default=None)
    if pipe is None or live is None:
        return RampPreview(live, (), 0, ends, policy)
    recent = recently_ramped_units([pipe.id], now - policy.recently).get(pipe.id, 0)
    first = first_share(policy, recent)
    return RampPreview(live, [share for share in policy.steps if first and share >= first], recent, ends, policy)
