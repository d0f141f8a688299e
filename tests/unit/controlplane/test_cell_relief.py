"""Relief of a cell at its maximum of lanes: the pipe to migrate, its target, and the creation of a cell."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from controlplane.autoscaler.cell_relief import (
    BELOW,
    PATIENCE_S,
    SETTLES_S,
    AddCell,
    CellFleet,
    CellLoad,
    MigratePipe,
    NoAction,
    PipeLoad,
    ReliefStep,
    relief_steps,
)
from mgmt.cells.placement import NewPipe, PlacementPolicy, allowed

LONG = PATIENCE_S + 1
ALL = PlacementPolicy(shard=99)


def pipe(name: str, per_s: float, **changes: Any) -> PipeLoad:
    return PipeLoad(name, changes.pop("tenant", "t1"), per_s, **changes)


def short(*pipes: PipeLoad, **changes: Any) -> CellLoad:
    fields: dict[str, Any] = {"id": "c1", "pipes": pipes, "short_s": LONG}
    return CellLoad(**fields | changes)


def only(*cells: CellLoad, most: int = 1, **changes: Any) -> ReliefStep:
    (step,) = relief_steps(CellFleet(list(cells), placing=ALL, most=most, **changes))
    return step


BUSY = short(pipe("a", 500), pipe("b", 300), pipe("c", 200))


def test_largest_pipe_that_fits_migrates_to_the_cell_with_the_least_traffic():
    cells = [CellLoad("c2", [pipe("d", 400)]), CellLoad("c3", [pipe("e", 350)])]
    step = only(BUSY, *cells)
    assert isinstance(step, MigratePipe)
    assert (step.pipe, step.target) == ("b", "c3"), "with a, c3 would have more than four fifths of the traffic of c1"
    assert only(BUSY, CellLoad("c2"), *cells) == MigratePipe("c1", "a", "c2", step.why)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"stable": False}, "an unstable cell"),
        ({"short_s": 1.0}, "one that is short itself"),
        ({"since_migration_s": SETTLES_S - 1}, "one where a pipe has just come"),
        ({"refused": "scaling is paused"}, "one that must not be changed"),
        ({"pipes": [pipe("x", 700)]}, "one that would be as busy"),
    ],
)
def test_unsuitable_cell_is_no_target_of_a_migration(other: dict[str, Any], why: str):
    fields: dict[str, Any] = {"id": "c2", "pipes": [pipe("y", 1)]}
    cells = [BUSY, CellLoad(**fields | other)]
    steps = list(relief_steps(CellFleet(cells, placing=ALL)))
    assert NoAction("c1", "no other cell has room, and the maximum of cells is 1 (PENSTOCK_CELLS_MAX)") in steps, why


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        (short(*BUSY.pipes, short_s=60.0), "a pipe is migrated if this lasts for 5 min"),
        (
            short(*BUSY.pipes, since_migration_s=60.0),
            "a pipe was migrated recently, and the effect is not measurable yet",
        ),
        (short(*BUSY.pipes, refused="scaling is paused by ann"), "scaling is paused by ann"),
        (
            short(pipe("a", 500), pipe("b", 0)),
            "it has one busy pipe, and a migration would not reduce the load of that pipe",
        ),
        (short(pipe("a", 500), pipe("b", 5)), "one pipe has nearly all of the traffic"),
        (short(pipe("a", 5, unfit="dedup"), pipe("b", 5, unfit="x")), "none of its pipes can be migrated (a: dedup)"),
    ],
)
def test_cell_without_relief_reports_the_reason(cell: CellLoad, why: str):
    assert only(cell, CellLoad("c2")) == NoAction("c1", why)


def test_cell_is_added_where_none_has_room_and_the_maximum_allows_it():
    step = only(BUSY, most=2)
    assert isinstance(step, AddCell)
    assert step.name == "c2"
    made = CellLoad("c2", stable=False)
    assert only(BUSY, made, most=3) == NoAction(
        "c1", "cell c2 is not ready yet, or not in the shard of any of its tenants"
    )
    assert isinstance(only(BUSY, CellLoad("c2"), most=3), MigratePipe)


def test_pipe_stays_within_the_dedicated_cells_of_its_tenant():
    own = {"c1": "t1", "c2": "t2"}
    assert only(BUSY, CellLoad("c2"), CellLoad("c3"), dedicated=own) == NoAction(
        "c1", "no other cell dedicated to the tenant has room: add one"
    )
    step = only(BUSY, CellLoad("c2"), dedicated={"c1": "t1", "c2": "t1"})
    assert isinstance(step, MigratePipe)


def test_cells_are_relieved_one_at_a_time_with_the_longest_shortage_first():
    other = short(*BUSY.pipes, id="c9", short_s=LONG + 1)
    steps = list(relief_steps(CellFleet([BUSY, other, CellLoad("c2")], placing=ALL)))
    assert [type(step) for step in steps] == [MigratePipe, NoAction]
    assert [step.cell for step in steps] == ["c9", "c1"]


loads = st.lists(st.floats(0, 1_000), min_size=1, max_size=5)


def cells_of(found: Sequence[Sequence[float]]) -> list[CellLoad]:
    return [
        CellLoad(
            f"c{n}", [pipe(f"p{n}-{k}", rate, tenant=f"t{k % 3}") for k, rate in enumerate(rates)], LONG * (n == 0)
        )
        for n, rates in enumerate(found)
    ]


@given(found=st.lists(loads, min_size=1, max_size=5), most=st.integers(1, 6), shard=st.integers(1, 4))
def test_migration_leaves_the_target_well_below_the_source_and_stays_in_the_shard(
    found: list[list[float]], most: int, shard: int
):
    placing = PlacementPolicy(shard=shard)
    fleet = CellFleet(cells_of(found), placing=placing, most=most)
    (step,) = relief_steps(fleet)
    by_id = {cell.id: cell for cell in fleet.cells}
    source = by_id["c0"]
    if isinstance(step, MigratePipe):
        moved = next(one for one in source.pipes if one.id == step.pipe)
        assert by_id[step.target].per_s + moved.per_s <= BELOW * source.per_s
        assert step.target in allowed(NewPipe(moved.id, moved.tenant), list(by_id), placing, {})
    elif isinstance(step, AddCell):
        assert step.name not in by_id
        assert len(by_id) < most
    else:
        assert step.why


@given(busy=loads, others=st.lists(loads, min_size=1, max_size=3), share=st.sampled_from((1.0, 0.1, 0.01)))
def test_migrated_pipe_is_not_migrated_back(busy: list[float], others: list[list[float]], share: float):
    """The target is short of lanes at once, and all rest periods are over.

    share: scale of the other cells' traffic; with less of it, a migration is likelier
    """
    found = [busy, *([per_s * share for per_s in of_cell] for of_cell in others)]
    fleet = CellFleet(cells_of(found), placing=ALL)
    (step,) = relief_steps(fleet)
    assume(isinstance(step, MigratePipe))
    assert isinstance(step, MigratePipe)
    moved = next(one for one in fleet.cells[0].pipes if one.id == step.pipe)
    after = [
        CellLoad(
            cell.id,
            [one for one in cell.pipes if one.id != step.pipe] + [moved] * (cell.id == step.target),
            LONG * (cell.id == step.target),
        )
        for cell in fleet.cells
    ]
    (back,) = relief_steps(CellFleet(after, placing=ALL))
    assert not (isinstance(back, MigratePipe) and (back.pipe, back.target) == (step.pipe, "c0"))
