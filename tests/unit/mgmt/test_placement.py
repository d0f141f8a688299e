"""Placement of pipes: in a small shard per tenant, by free capacity if known, else by number of pipes."""

from collections import Counter
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mgmt.cells.placement import (
    CellCapacity,
    Cores,
    NewPipe,
    PlacementChoice,
    PlacementPolicy,
    place,
    shard_of,
    share_of,
    usual_need,
)

POLICY = PlacementPolicy()
TENANTS = [f"ten_{number}" for number in range(400)]
CELLS = [f"c{number}" for number in range(1, 13)]
FULL = {"process": 1.0, "transmit": 1.0}
names = st.sets(st.text("abc123", min_size=1, max_size=4), min_size=1, max_size=12)
cores = st.fixed_dictionaries({kind: st.floats(0, 2) for kind in FULL})
rooms = st.lists(
    st.builds(CellCapacity, st.text("abc123", min_size=1, max_size=4), st.integers(0, 50), cores, st.just(FULL)),
    min_size=1, max_size=8, unique_by=lambda cell: cell.id,
)  # fmt: skip
pipes = st.lists(
    st.builds(NewPipe, st.uuids().map(str), st.sampled_from(TENANTS[:20]), cores), max_size=20, unique_by=lambda p: p.id
)


class TestShards:
    def test_few_tenants_share_all_their_cells_and_most_share_none(self):
        shards = {tenant: set(shard_of(tenant, CELLS, 2)) for tenant in TENANTS}
        shared = Counter(len(shards[one] & shards[other]) for one, other in combinations(TENANTS, 2))
        assert shared[2] / shared.total() < 1.3 * (1 / 66)  # twelve cells have 66 pairs
        assert shared[0] / shared.total() > 0.65

    def test_tenants_are_spread_evenly(self):
        load = Counter(cell for tenant in TENANTS for cell in shard_of(tenant, CELLS, 2))
        fair = len(TENANTS) * 2 / len(CELLS)
        assert set(load) == set(CELLS)
        assert all(0.6 * fair < load[cell] < 1.4 * fair for cell in CELLS)

    def test_new_cell_gets_its_share_and_no_tenant_changes_between_other_cells(self):
        moved = 0
        for tenant in TENANTS:
            before, after = (set(shard_of(tenant, cells, 2)) for cells in (CELLS, [*CELLS, "c99"]))
            assert after - before <= {"c99"}
            moved += before != after
        assert moved / len(TENANTS) < 1.3 * (2 / 13)

    @given(cells=names, tenant=st.sampled_from(TENANTS), size=st.integers(1, 4))
    def test_shard_does_not_depend_on_the_order_of_cells(self, cells: set[str], tenant: str, size: int):
        shard = shard_of(tenant, sorted(cells), size)
        assert shard == shard_of(tenant, sorted(cells, reverse=True), size)
        assert len(shard) == min(size, len(cells))


def with_pipe(cell: CellCapacity, pipe: NewPipe) -> CellCapacity:
    used = {kind: cell.used[kind] + pipe.need[kind] for kind in FULL}
    return replace(cell, pipes=cell.pipes + 1, used=used)


@given(pipes=pipes, cells=rooms)
def test_headroom_is_kept_as_long_as_a_cell_of_the_shard_has_it(pipes: list[NewPipe], cells: list[CellCapacity]):
    now = {cell.id: cell for cell in cells}
    for pipe in pipes:
        choice = place([pipe], now.values(), POLICY)[pipe.id]
        assert choice.among == shard_of(pipe.tenant, now, POLICY.shard)
        shares = {name: share_of(now[name], pipe.need) for name in choice.among}
        assert shares[choice.cell] == min(shares.values())
        assert (choice.by == "room") == any(share <= 1 - POLICY.headroom for share in shares.values())
        now[choice.cell] = with_pipe(now[choice.cell], pipe)


@given(pipes=pipes, cells=rooms)
def test_batch_placement_equals_placement_one_by_one_in_any_order(pipes: list[NewPipe], cells: list[CellCapacity]):
    chosen = place(pipes, cells, POLICY)
    assert chosen == place(pipes, reversed(cells), POLICY)
    assert list(chosen) == [pipe.id for pipe in pipes]
    now = {cell.id: cell for cell in cells}
    for pipe in pipes:
        assert place([pipe], now.values(), POLICY) == {pipe.id: chosen[pipe.id]}
        now[chosen[pipe.id].cell] = with_pipe(now[chosen[pipe.id].cell], pipe)


@given(pipes=pipes)
def test_single_cell_gets_every_pipe(pipes: list[NewPipe]):
    for cell in (CellCapacity("c1"), CellCapacity("c1", 3, {"process": 5.0}, FULL)):
        assert {choice.cell for choice in place(pipes, [cell], POLICY).values()} <= {"c1"}
        assert len(place(pipes, [cell], POLICY)) == len(pipes)


def test_without_a_cell_no_pipe_is_placed():
    assert place([NewPipe("p1", "t1")], [], POLICY) == {}


def test_cells_without_a_capacity_test_are_filled_by_the_number_of_pipes():
    cells = [CellCapacity("c1", 2), CellCapacity("c2", 1)]
    chosen = place([NewPipe(f"p{number}", "t1") for number in range(3)], cells, POLICY)
    assert [choice.cell for choice in chosen.values()] == ["c2", "c1", "c2"]
    assert {choice.by for choice in chosen.values()} == {"pipes"}


def test_lane_kind_with_the_least_room_decides():
    cells = [
        CellCapacity("c1", 1, {"process": 0.1, "transmit": 0.6}, FULL),
        CellCapacity("c2", 9, {"process": 0.4}, FULL),
    ]
    (choice,) = place([NewPipe("p1", "t1", {"process": 0.1})], cells, POLICY).values()
    assert choice == PlacementChoice("c2", ["c1", "c2"], "room")


class TestDedicatedCells:
    CELLS = (CellCapacity("c1", 5), CellCapacity("c2"), CellCapacity("c3"))

    def cell_of(self, pipe: str, tenant: str, dedicated: dict[str, str]) -> str:
        return place([NewPipe(pipe, tenant)], self.CELLS, POLICY, dedicated)[pipe].cell

    @pytest.mark.parametrize("whom", ["p1", "t1"])
    def test_pipe_or_tenant_with_a_dedicated_cell_is_placed_there(self, whom: str):
        assert self.cell_of("p1", "t1", {"c1": whom}) == "c1"

    def test_no_other_tenant_is_placed_on_a_dedicated_cell(self):
        dedicated = {"c2": "t9", "c3": "p9"}
        assert {self.cell_of("p1", tenant, dedicated) for tenant in TENANTS[:50]} == {"c1"}

    def test_pipe_is_not_placed_if_all_cells_are_dedicated_to_others(self):
        assert place([NewPipe("p1", "t1")], self.CELLS, POLICY, dict.fromkeys(("c1", "c2", "c3"), "t9")) == {}


def test_need_of_a_new_pipe_is_the_median_of_its_tenant_else_of_all():
    tenants = {"p1": "t1", "p2": "t1", "p3": "t1", "p4": "t2"}
    needs: dict[str, Cores] = {
        "p1": {"process": 0.1},
        "p2": {"process": 0.2, "transmit": 0.4},
        "p3": {"process": 0.9},
        "p4": {"process": 7},
    }
    assert usual_need(tenants, needs, "t1") == {"process": 0.2, "transmit": 0.0}
    assert usual_need(tenants, needs, "t3") == {"process": 0.55, "transmit": 0.0}
    assert usual_need({}, {}, "t1") == {}


@pytest.mark.parametrize(("field", "value"), [("shard", 0), ("headroom", 1.0), ("headroom", -0.1)])
def test_policy_that_allows_no_placement_is_refused_by_name(field: str, value: Any):
    with pytest.raises(ValueError, match=f"PENSTOCK_PLACING_{field.upper()}"):
        PlacementPolicy(**{field: value})
