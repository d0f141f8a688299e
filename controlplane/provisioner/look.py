"""Reads the rows into a Snapshot: a dozen small queries, however many pipes there are."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Max, Q

from controlplane.compute.port import Compute, ComputeError, Desired
from controlplane.control_topic import Published
from controlplane.leases import cell_states
from controlplane.provisioner.ramps import ramps_under_way
from controlplane.provisioner.relocations import relocations_under_way
from controlplane.provisioner.snapshot import Beat, CellView, PipeView, RevisionView, Snapshot, Versioned
from dataplane.names import PURPOSES
from mgmt.models import (
    ApiKey,
    Cell,
    Destination,
    Heartbeat,
    Move,
    Pipe,
    PipeRevision,
    SourceSchema,
    TenantQuota,
    Topic,
)
from mgmt.provisioning.placing import PlacingPolicy
from mgmt.provisioning.ramps import RampPolicy
from mgmt.queries.placing import Room, room_for
from mgmt.queries.ramps import recently_taken

FRESH: Final = timedelta(seconds=5)
MOVES_FOR: Final = timedelta(days=1)


def take_snapshot(
    *,
    compute: Compute,
    published: Mapping[str, Published],
    master: str,
    now: datetime,
    problems: Mapping[str, str],
    check_topics: bool,
    policy: RampPolicy,
    placing: PlacingPolicy,
) -> Snapshot:
    """What there is at about `now`.

    Moves are read before what they rely on: who sees a move sees the destination as it was resumed, or lets a probe
    pass, in the transaction that made the move, and publishes that record before the move's.
    """
    moves = _moves(now)
    revisions = _revisions()
    pipes = Pipe.objects.order_by("created_at", "id").values_list("id", "version", "state", "cell_id", "tenant_id")
    to_place = [(id_, tenant) for id_, _, _, cell, tenant in pipes if cell is None]
    room = room_for(to_place, placing, now) if to_place else Room([], [])
    return Snapshot(
        cells=_cells(compute, problems),
        pipes=[
            PipeView(id_, version, state == Pipe.State.ACTIVE, cell) for id_, version, state, cell, _tenant in pipes
        ],
        revisions=revisions,
        keys=[Versioned(*row) for row in ApiKey.objects.values_list("source__pipe_id", "digest", "version")],
        destinations=[Versioned(*row) for row in Destination.objects.values_list("pipe_id", "name", "version")],
        beats=_beats(now),
        published=published,
        master=master,
        check_topics=check_topics,
        moves=moves,
        schemas=_schemas(),
        quotas=dict(TenantQuota.objects.values_list("tenant_id", "version")),
        states=cell_states(now),
        ramps=ramps_under_way(now),
        recent=recently_taken({row.pipe for row in revisions if row.state == "requested"}, now - policy.recently),
        relocations=relocations_under_way(),
        policy=policy,
        to_place=room.pipes,
        rooms=room.cells,
        dedicated=room.dedicated,
        placing=placing,
        now=now,
    )


def _cells(compute: Compute, problems: Mapping[str, str]) -> list[CellView]:
    bound = Counter(Topic.objects.values_list("cell_id", flat=True))
    cells = list(Cell.objects.order_by("id"))
    wishes, away = _wishes(compute, [cell.id for cell in cells])
    return [
        CellView(
            id=cell.id,
            version=cell.version,
            epoch=cell.epoch,
            bound=bound[cell.id] >= len(PURPOSES),
            desired=wishes.get(cell.id),
            release=cell.release_id or "",
            problem=problems.get(cell.id, "" if cell.id in wishes else away),
            asleep=cell.is_asleep,
        )
        for cell in cells
    ]


def _wishes(compute: Compute, cells: list[str]) -> tuple[dict[str, Desired | None], str]:
    """What compute was asked for; without those that it does not answer for, and then why.

    After the first of these no more is asked: each would cost the tick as long again, and it publishes keys, too.
    """
    wishes: dict[str, Desired | None] = {}
    try:
        for cell in cells:
            wishes[cell] = compute.observe(cell).desired
    except ComputeError as exc:
        return wishes, f"waiting for compute: {exc}"
    return wishes, ""


def _revisions() -> list[RevisionView]:
    rows = PipeRevision.objects.order_by().values_list(
        "id", "pipe_id", "number", "state", "published_offset", "state_reason"
    )
    return [RevisionView(*row) for row in rows]


def _moves(now: datetime) -> list[Versioned]:
    """Those under way, and for a day those that are over: their records are written once more, without places."""
    rows = Move.objects.filter(Q(finished_at=None) | Q(finished_at__gte=now - MOVES_FOR)).order_by("id")
    return [Versioned(*row) for row in rows.values_list("pipe_id", "id", "version")]


def _schemas() -> list[Versioned]:
    """The newest of each source."""
    newest = SourceSchema.objects.order_by().values_list("source__pipe_id", "source__name").annotate(Max("number"))
    return [Versioned(*row) for row in newest]


def _beats(now: datetime) -> list[Beat]:
    rows = Heartbeat.objects.filter(at__gte=now - FRESH)
    return [Beat(*row) for row in rows.values_list("cell", "writer", "kind", "epoch", "state", "table_offset")]
