"""What placing goes by: what cells' lanes take, and what pipes took of late. The Provisioner and the plan page ask."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db.models import Max

from mgmt.models import Cell, Pipe, Rating, ScaleGroup, Usage
from mgmt.provisioning.placing import RATED_KINDS, CellRoom, Cores, NewPipe, PlacingPolicy, usual_need
from mgmt.provisioning.settings import cell_master
from mgmt.queries.ratings import newest_ratings

DAYS: Final = timedelta(days=7)
YOUNG: Final = timedelta(days=1)  # a pipe that did nothing yet, and may be about to
HOUR_S, DAY_S = 3_600.0, 86_400.0


@dataclass(frozen=True)
class Room:
    """Pipes to be placed with what they are taken to need, the cells as they are, and for whom some of them are kept.

    dedicated: cell -> tenant
    """

    pipes: Sequence[NewPipe]
    cells: Sequence[CellRoom]
    dedicated: Mapping[str, str] = field(default_factory=dict)


def room_for(pipes: Sequence[tuple[str, str]], policy: PlacingPolicy, now: datetime) -> Room:
    """For pipes given as (id, tenant): six queries at most, however many there are. Closed ones do not count.

    A pipe needs what it took on the busiest of its last days. One that is new, or was placed within the last day and
    did nothing yet, is taken to need what its tenant's pipes usually do.
    """
    open_ones = Pipe.objects.exclude(cell=None).exclude(state=Pipe.State.CLOSED)
    placed = list(open_ones.values_list("id", "tenant_id", "cell_id", "created_at"))
    tenants = {id_: tenant for id_, tenant, _, _ in placed}
    capacity = _capacities()
    needs = _needs(policy, now) if capacity else {}  # where nothing was rated, nobody asks
    known = {pipe: need for pipe, need in needs.items() if pipe in tenants}
    usual = {tenant: usual_need(tenants, known, tenant) for tenant in {*tenants.values(), *(t for _, t in pipes)}}
    used: dict[str, list[Cores]] = defaultdict(list)
    for id_, tenant, cell, made in placed:
        used[cell].append(known.get(id_) or (usual[tenant] if made >= now - YOUNG else {}))
    kept_for = dict(Cell.objects.order_by("id").values_list("id", "dedicated_to"))
    cells = [CellRoom(cell, len(used[cell]), _together(used[cell]), capacity.get(cell, {})) for cell in kept_for]
    dedicated = {cell: tenant for cell, tenant in kept_for.items() if tenant}
    return Room([NewPipe(id_, tenant, usual[tenant]) for id_, tenant in pipes], cells, dedicated)


def _needs(policy: PlacingPolicy, now: datetime) -> dict[str, Cores]:
    """By pipe: the mean of its busiest day in cores, times the policy's peak, by kind of lane."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    found: dict[str, dict[str, float]] = defaultdict(dict)
    rows = Usage.objects.filter(kind__in=RATED_KINDS, pipe__isnull=False, day__gte=(midnight - DAYS).date()).order_by()
    so_far_s = max(HOUR_S, (now - midnight).total_seconds())
    for days, span_s in ((rows.filter(day__lt=midnight.date()), DAY_S), (rows.filter(day=midnight.date()), so_far_s)):
        for pipe, kind, cpu_us in days.values_list("pipe_id", "kind").annotate(Max("cpu_us")):
            cores = policy.peak * cpu_us / 1_000_000 / span_s
            found[pipe][kind] = max(cores, found[pipe].get(kind, 0.0))
    return dict(found)


def _capacities() -> dict[str, Cores]:
    """By cell: the cores with which its lanes, as many as it may have, do what they were rated at.

    A cell that was not rated is taken to do what the one that was rated last does: they run on the same Spark master.
    """
    ratings = newest_ratings(master=cell_master())
    lanes: dict[str, dict[str, int]] = defaultdict(dict)
    for cell, kind, most in ScaleGroup.objects.filter(kind__in=RATED_KINDS).values_list("cell_id", "kind", "maximum"):
        lanes[cell][kind] = most
    last = max(ratings.values(), key=_rated_at, default={})
    capacity = {cell: _capacity(ratings.get(cell, last), most) for cell, most in lanes.items()}
    return {cell: cores for cell, cores in capacity.items() if len(cores) == len(RATED_KINDS)}


def _capacity(ratings: Mapping[str, Rating], lanes: Mapping[str, int]) -> Cores:
    found = {
        kind: ratings[kind].per_s * ratings[kind].cpu_us / 1_000_000 * most
        for kind, most in lanes.items()
        if kind in ratings
    }
    return {kind: cores for kind, cores in found.items() if cores > 0}


def _rated_at(ratings: Mapping[str, Rating]) -> datetime:
    return max(rating.at for rating in ratings.values())


def _together(needs: Iterable[Cores]) -> Cores:
    found: dict[str, float] = defaultdict(float)
    for need in needs:
        for kind, cores in need.items():
            found[kind] += cores
    return dict(found)
