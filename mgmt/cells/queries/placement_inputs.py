"""Inputs of placement: the capacity of cells and the recent use of pipes. For the Provisioner and the plan page."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db.models import Max

from mgmt.cells.placement import RATED_KINDS, CellCapacity, Cores, NewPipe, PlacementPolicy, usual_need
from mgmt.cells.policies import cell_master
from mgmt.cells.queries.capacity_tests import newest_capacity_results
from mgmt.models import CapacityResult, Cell, Pipe, ScaleGroup, Usage
from mgmt.tenancy.row_scope import all_tenants

DAYS: Final = timedelta(days=7)
YOUNG: Final = timedelta(days=1)  # a pipe without usage yet, which may start soon
HOUR_S, DAY_S = 3_600.0, 86_400.0


@dataclass(frozen=True)
class PlacementInputs:
    """Pipes to place with their assumed needs, the current cells, and the dedicated cells.

    dedicated: cell -> the only tenant whose pipes may be placed on it
    """

    pipes: Sequence[NewPipe]
    cells: Sequence[CellCapacity]
    dedicated: Mapping[str, str] = field(default_factory=dict)


@all_tenants("placement")
def placement_inputs(pipes: Sequence[tuple[str, str]], policy: PlacementPolicy, now: datetime) -> PlacementInputs:
    """Return the inputs for pipes given as (id, tenant); at most six queries. Closed pipes do not count.

    A pipe needs as much as it used on the busiest of its last days. A pipe that is new, or that was created within the
    last day and has no usage yet, is assumed to need as much as its tenant's pipes usually do.
    """
    open_pipes = Pipe.objects.exclude(cell=None).exclude(state=Pipe.State.CLOSED)
    placed = list(open_pipes.values_list("id", "tenant_id", "cell_id", "created_at"))
    tenants = {id_: tenant for id_, tenant, _, _ in placed}
    capacity = _capacities()
    needs = _needs(policy, now) if capacity else {}  # without capacity results, needs are not used
    known = {pipe: need for pipe, need in needs.items() if pipe in tenants}
    usual = {tenant: usual_need(tenants, known, tenant) for tenant in {*tenants.values(), *(t for _, t in pipes)}}
    used: dict[str, list[Cores]] = defaultdict(list)
    for id_, tenant, cell, created_at in placed:
        used[cell].append(known.get(id_) or (usual[tenant] if created_at >= now - YOUNG else {}))
    tenants_by_cell = dict(Cell.objects.order_by("id").values_list("id", "dedicated_to"))
    cells = [
        CellCapacity(cell, len(used[cell]), _sum_of(used[cell]), capacity.get(cell, {})) for cell in tenants_by_cell
    ]
    dedicated = {cell: tenant for cell, tenant in tenants_by_cell.items() if tenant}
    return PlacementInputs([NewPipe(id_, tenant, usual[tenant]) for id_, tenant in pipes], cells, dedicated)


def _needs(policy: PlacementPolicy, now: datetime) -> dict[str, Cores]:
    """Return by pipe and kind of lane the mean cores of its busiest day, times the policy's peak."""
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
    """Return by cell and kind the cores that its maximum number of lanes use at their measured rate.

    A cell without a capacity test is assumed to equal the one tested last: both run on the same Spark master.
    """
    ratings = newest_capacity_results(master=cell_master())
    lanes: dict[str, dict[str, int]] = defaultdict(dict)
    for cell, kind, most in ScaleGroup.objects.filter(kind__in=RATED_KINDS).values_list("cell_id", "kind", "maximum"):
        lanes[cell][kind] = most
    last = max(ratings.values(), key=_rated_at, default={})
    capacity = {cell: _capacity(ratings.get(cell, last), most) for cell, most in lanes.items()}
    return {cell: cores for cell, cores in capacity.items() if len(cores) == len(RATED_KINDS)}


def _capacity(ratings: Mapping[str, CapacityResult], lanes: Mapping[str, int]) -> Cores:
    found = {
        kind: ratings[kind].per_s * ratings[kind].cpu_us / 1_000_000 * most
        for kind, most in lanes.items()
        if kind in ratings
    }
    return {kind: cores for kind, cores in found.items() if cores > 0}


def _rated_at(ratings: Mapping[str, CapacityResult]) -> datetime:
    return max(rating.at for rating in ratings.values())


def _sum_of(needs: Iterable[Cores]) -> Cores:
    found: dict[str, float] = defaultdict(float)
    for need in needs:
        for kind, cores in need.items():
            found[kind] += cores
    return dict(found)
