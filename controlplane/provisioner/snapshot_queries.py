"""Reads the rows into a ProvisionerSnapshot: a dozen small queries, for any number of pipes."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Max, Q

from controlplane.compute.port import Compute, ComputeError, DesiredApplication
from controlplane.control_topic import PublishedRecord
from controlplane.leases import cell_states
from controlplane.provisioner.pipe_migrations import open_migrations
from controlplane.provisioner.ramps import open_ramps
from controlplane.provisioner.snapshot import (
    BelievedHeartbeat,
    CellSnapshot,
    PipePlacement,
    ProvisionerSnapshot,
    RevisionSnapshot,
    VersionedRow,
)
from dataplane.names import PURPOSES
from mgmt.cells.placement import PlacementPolicy
from mgmt.cells.queries.placement_inputs import PlacementInputs, placement_inputs
from mgmt.models import (
    ApiKey,
    Cell,
    Destination,
    EventType,
    Heartbeat,
    Pipe,
    PipeRevision,
    Redrive,
    Replay,
    Shadow,
    SourceEventTypes,
    SourceSchema,
    SourceWebhook,
    SubjectVersion,
    TenantQuota,
    Topic,
)
from mgmt.ramps.queries import recently_ramped_units
from mgmt.ramps.schedule import RampPolicy

FRESH: Final = timedelta(seconds=5)
ENDED_REDRIVES_FOR: Final = timedelta(days=1)


def take_snapshot(
    *,
    compute: Compute,
    published: Mapping[str, PublishedRecord],
    master: str,
    now: datetime,
    problems: Mapping[str, str],
    check_topics: bool,
    policy: RampPolicy,
    placing: PlacementPolicy,
) -> ProvisionerSnapshot:
    """Read the snapshot at about `now`. `problems`: cells that must not be changed, and why.

    Redrives, releases, replays and shadow runs are read before the rows that they rely on: a tick that sees one also
    sees its destination as the same transaction resumed it, or let a probe pass, and publishes that record before the
    redrive's.
    """
    redrives, replays, shadows = _redrives(now), _replays(now), _shadows(now)
    revisions = _revisions()
    pipes = Pipe.objects.order_by("created_at", "id").values_list("id", "version", "state", "cell_id", "tenant_id")
    to_place = [(id_, tenant) for id_, _, _, cell, tenant in pipes if cell is None]
    room = placement_inputs(to_place, placing, now) if to_place else PlacementInputs([], [])
    return ProvisionerSnapshot(
        cells=_cells(compute, problems),
        pipes=[
            PipePlacement(id_, version, state == Pipe.State.ACTIVE, cell)
            for id_, version, state, cell, _tenant in pipes
        ],
        revisions=revisions,
        keys=[VersionedRow(*row) for row in ApiKey.objects.values_list("source__pipe_id", "digest", "version")],
        destinations=[VersionedRow(*row) for row in Destination.objects.values_list("pipe_id", "name", "version")],
        heartbeats=_heartbeats(now),
        published=published,
        master=master,
        check_topics=check_topics,
        redrives=redrives,
        replays=replays,
        shadows=shadows,
        schemas=_schemas(),
        event_types=_event_types(),
        webhooks=_webhooks(),
        subjects=_subjects(),
        quotas=dict(TenantQuota.objects.values_list("tenant_id", "version")),
        states=cell_states(now),
        ramps=open_ramps(now),
        recently_ramped=recently_ramped_units(
            {row.pipe for row in revisions if row.state == "requested"}, now - policy.recently
        ),
        migrations=open_migrations(),
        policy=policy,
        to_place=room.pipes,
        capacities=room.cells,
        dedicated=room.dedicated,
        placing=placing,
        now=now,
    )


def _cells(compute: Compute, problems: Mapping[str, str]) -> list[CellSnapshot]:
    bound = Counter(Topic.objects.values_list("cell_id", flat=True))
    cells = list(Cell.objects.order_by("id"))
    desired, away = _desired_applications(compute, [cell.id for cell in cells])
    return [
        CellSnapshot(
            id=cell.id,
            version=cell.version,
            epoch=cell.epoch,
            bound=bound[cell.id] >= len(PURPOSES),
            desired=desired.get(cell.id),
            release=cell.release_id or "",
            problem=problems.get(cell.id, "" if cell.id in desired else away),
            asleep=cell.is_asleep,
        )
        for cell in cells
    ]


def _desired_applications(compute: Compute, cells: list[str]) -> tuple[dict[str, DesiredApplication | None], str]:
    """Return the desired applications by cell, and why some are missing ("" if none is).

    Stops at the first error: each further request would delay the tick as long again, and the tick also publishes keys.
    """
    desired: dict[str, DesiredApplication | None] = {}
    try:
        for cell in cells:
            desired[cell] = compute.observe(cell).desired
    except ComputeError as exc:
        return desired, f"waiting for compute: {exc}"
    return desired, ""


def _revisions() -> list[RevisionSnapshot]:
    rows = PipeRevision.objects.order_by().values_list(
        "id", "pipe_id", "number", "state", "published_offset", "state_reason", "at_once"
    )
    return [RevisionSnapshot(*row) for row in rows]


def _redrives(now: datetime) -> list[VersionedRow]:
    """Return open redrives and releases, and for a day ended ones: their last record has no offsets any more."""
    rows = Redrive.objects.filter(Q(finished_at=None) | Q(finished_at__gte=now - ENDED_REDRIVES_FOR)).order_by("id")
    return [VersionedRow(*row) for row in rows.values_list("pipe_id", "id", "version")]


def _replays(now: datetime) -> list[VersionedRow]:
    """Return open replays, and for a day ended ones: their last record has no filters any more."""
    rows = Replay.objects.filter(Q(finished_at=None) | Q(finished_at__gte=now - ENDED_REDRIVES_FOR)).order_by("id")
    return [VersionedRow(*row) for row in rows.values_list("pipe_id", "id", "version")]


def _shadows(now: datetime) -> list[VersionedRow]:
    """Return open shadow runs, and for a day ended ones: their last record has the state `ended`."""
    rows = Shadow.objects.filter(Q(finished_at=None) | Q(finished_at__gte=now - ENDED_REDRIVES_FOR)).order_by("id")
    return [VersionedRow(*row) for row in rows.values_list("pipe_id", "id", "version")]


def _schemas() -> list[VersionedRow]:
    """Return the newest schema version of each source."""
    newest = SourceSchema.objects.order_by().values_list("source__pipe_id", "source__name").annotate(Max("number"))
    return [VersionedRow(*row) for row in newest]


def _event_types() -> list[VersionedRow]:
    rows = SourceEventTypes.objects.filter(version__gt=0)
    return [VersionedRow(*row) for row in rows.values_list("source__pipe_id", "source__name", "version")]


def _webhooks() -> list[VersionedRow]:
    rows = SourceWebhook.objects.order_by("source")
    return [VersionedRow(*row) for row in rows.values_list("source__pipe_id", "source__name", "version")]


def _subjects() -> dict[tuple[str, str], int]:
    """Return the newest version of each subject that a source uses."""
    used = EventType.objects.order_by().values("subject")
    rows = SubjectVersion.objects.filter(subject__in=used).order_by().values_list("subject__tenant_id", "subject__name")
    return {(tenant, name): newest for tenant, name, newest in rows.annotate(Max("number"))}


def _heartbeats(now: datetime) -> list[BelievedHeartbeat]:
    rows = Heartbeat.objects.filter(at__gte=now - FRESH)
    return [
        BelievedHeartbeat(*row) for row in rows.values_list("cell", "writer", "kind", "epoch", "state", "table_offset")
    ]
