"""Input of one tick of the Provisioner: plain values, so that deciding needs no database and no Kafka."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from controlplane.compute.port import DesiredApplication
from controlplane.control_topic import PublishedRecord
from controlplane.interlocks import CellState
from controlplane.provisioner.ramping import RampProgress
from mgmt.cells.placement import CellCapacity, NewPipe, PlacementPolicy
from mgmt.ramps.schedule import RampPolicy

EPOCH: Final = datetime.fromtimestamp(0, UTC)


class CellSnapshot(Struct, frozen=True):
    """A cell.

    bound:   all its topics are made and bound to Kafka's ids
    desired: the application that compute was asked for
    release: the build that its application should run; "" while it has none
    problem: why it must not be changed; "" if it may
    asleep:  it should have no lanes and no application (controlplane.autoscaler.sleeping)
    """

    id: str
    version: int
    epoch: int
    bound: bool
    desired: DesiredApplication | None
    release: str
    problem: str = ""
    asleep: bool = False


class PipePlacement(Struct, frozen=True):
    """A pipe and the cell on which it is placed, if any."""

    id: str
    version: int
    active: bool
    cell: str | None


class RevisionSnapshot(Struct, frozen=True):
    """A revision; `state` as in mgmt's PipeRevision. `at_once`: it takes all keys at once instead of ramping."""

    id: int
    pipe: str
    number: int
    state: str
    published_offset: int | None = None
    reason: str = ""
    at_once: bool = False


class VersionedRow(Struct, frozen=True):
    """A row behind a control record of a pipe: an API key (name = digest), destination, schema, redrive, replay, ..."""

    pipe: str
    name: str
    version: int


class BelievedHeartbeat(Struct, frozen=True):
    """A heartbeat that is fresh enough to rely on."""

    cell: str
    writer: str
    kind: str
    epoch: int
    state: str
    table_offset: int


class MigrationView(Struct, frozen=True):
    """An open migration of a pipe.

    says:        the reason for waiting that its row has now
    is_revert: it reverts an earlier migration
    in_order:    the target must hold the pipe's messages until the source has been drained
    held:        the pipe's record says so
    unfit:       why the pipe cannot be migrated at all; "" if it can
    busy:        work of the pipe that must end before the switch; "" if there is none
    left_at:     time from which ingest sends nothing to the source, except for requests already begun
    ends:        the source's end offsets are stored
    behind:      a partition of the source that has not been read to its end, or holds messages of the pipe; "" if none
    """

    id: int
    pipe: str
    source: str
    target: str
    state: str
    asked_at: datetime
    says: str = ""
    is_revert: bool = False
    in_order: bool = False
    held: bool = False
    unfit: str = ""
    busy: str = ""
    left_at: datetime | None = None
    ends: bool = False
    behind: str = ""


class ProvisionerSnapshot(Struct, frozen=True):
    """Rows, heartbeats, desired applications, and the control topic's newest records, at about one moment.

    heartbeats:      fresh heartbeats of lanes, drivers and ingest replicas
    check_topics:    check bound topics in this tick as well
    redrives:        redrives and releases
    replays:         replays
    shadows:         shadow runs
    states:          input of the interlocks, by cell
    to_place:        pipes without a cell
    capacities:      capacity of the cells; empty if every pipe has a cell
    dedicated:       cell -> the tenant that it is reserved for
    event_types:     versions of the event types of sources
    webhooks:        versions of the webhook settings of sources
    subjects:        newest versions of the subjects that sources use, by tenant and name
    quotas:          versions of tenants' own limits, by tenant
    ramps:           open ramps, by their revision's id
    recently_ramped: number of messages that a pipe with a requested revision took recently, by pipe
    migrations:      open migrations of pipes between cells
    """

    cells: list[CellSnapshot]
    pipes: list[PipePlacement]
    revisions: list[RevisionSnapshot]
    keys: list[VersionedRow]
    destinations: list[VersionedRow]
    heartbeats: list[BelievedHeartbeat]
    published: Mapping[str, PublishedRecord]
    master: str
    check_topics: bool = False
    redrives: list[VersionedRow] = []
    replays: list[VersionedRow] = []
    shadows: list[VersionedRow] = []
    schemas: list[VersionedRow] = []
    event_types: list[VersionedRow] = []
    webhooks: list[VersionedRow] = []
    subjects: Mapping[tuple[str, str], int] = {}
    quotas: Mapping[str, int] = {}
    states: Mapping[str, CellState] = {}
    ramps: Mapping[int, RampProgress] = {}
    recently_ramped: Mapping[str, int] = {}
    migrations: Sequence[MigrationView] = ()
    policy: RampPolicy = RampPolicy()
    to_place: Sequence[NewPipe] = []
    capacities: Sequence[CellCapacity] = []
    dedicated: Mapping[str, str] = {}
    placing: PlacementPolicy = PlacementPolicy()
    now: datetime = EPOCH
