"""What one tick of the Provisioner looks at: plain values, so that deciding needs no database and no Kafka."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from controlplane.compute.port import Desired
from controlplane.control_topic import Published
from controlplane.interlocks import CellState
from controlplane.provisioner.ramping import RampView
from mgmt.provisioning.placing import CellRoom, NewPipe, PlacingPolicy
from mgmt.provisioning.ramps import RampPolicy

EPOCH: Final = datetime.fromtimestamp(0, UTC)


class CellView(Struct, frozen=True):
    """A cell. `bound`: all its topics are made and bound to Kafka's ids; `problem`: why it must not be touched.

    release: the build that its application is to run; "" as long as it has none
    asleep:  it is to have no lanes and no application (controlplane.autoscaler.sleeping)
    """

    id: str
    version: int
    epoch: int
    bound: bool
    desired: Desired | None  # what compute was asked for
    release: str
    problem: str = ""
    asleep: bool = False


class PipeView(Struct, frozen=True):
    """A pipe and the cell it was placed on, if any."""

    id: str
    version: int
    active: bool
    cell: str | None


class RevisionView(Struct, frozen=True):
    """A revision; `state` as in mgmt's PipeRevision."""

    id: int
    pipe: str
    number: int
    state: str
    published_offset: int | None = None
    reason: str = ""


class Versioned(Struct, frozen=True):
    """A row that becomes a control record of a pipe: an API key (name = digest), a destination, a schema or a move."""

    pipe: str
    name: str
    version: int


class Beat(Struct, frozen=True):
    """A heartbeat young enough to believe."""

    cell: str
    writer: str
    kind: str
    epoch: int
    state: str
    table_offset: int


class RelocationView(Struct, frozen=True):
    """A relocation under way.

    unfit:  why the pipe cannot be moved at all   busy: what of the pipe must end before it is switched
    in_order: the target must hold what comes until the source has ended   held: and has been told so
    ends:   whether the source's ends are noted    behind: who has not passed them, or what of the pipe lies behind
    """

    id: int
    pipe: str
    source: str
    target: str
    state: str
    asked_at: datetime
    says: str = ""
    is_way_back: bool = False
    in_order: bool = False
    held: bool = False
    unfit: str = ""
    busy: str = ""
    left_at: datetime | None = None
    ends: bool = False
    behind: str = ""


class Snapshot(Struct, frozen=True):
    """Rows, heartbeats, what compute was asked for, and what the control topic holds, at about one moment.

    states: by cell, what the interlocks ask
    to_place: pipes without a cell   rooms: the cells, if there is such a pipe
    dedicated: cells that are kept for one tenant, and for which
    quotas: versions of tenants' own limits, by tenant
    ramps: those under way, by their revision's id   recent: messages that pipes with a requested revision took of late
    """

    cells: list[CellView]
    pipes: list[PipeView]
    revisions: list[RevisionView]
    keys: list[Versioned]
    destinations: list[Versioned]
    beats: list[Beat]
    published: Mapping[str, Published]
    master: str
    check_topics: bool = False
    moves: list[Versioned] = []
    schemas: list[Versioned] = []
    quotas: Mapping[str, int] = {}
    states: Mapping[str, CellState] = {}
    ramps: Mapping[int, RampView] = {}
    recent: Mapping[str, int] = {}
    relocations: Sequence[RelocationView] = ()
    policy: RampPolicy = RampPolicy()
    to_place: Sequence[NewPipe] = []
    rooms: Sequence[CellRoom] = []
    dedicated: Mapping[str, str] = {}
    placing: PlacingPolicy = PlacingPolicy()
    now: datetime = EPOCH
