"""Changes of several cells: acquire the leases of all or of none, and release all of them."""

from datetime import UTC, datetime

import pytest

from controlplane.leases import LeaseLostError, acquire
from controlplane.provisioner.cell_change import ONE_CHANGE, changing
from mgmt.models import Cell, CellVerdict, Lease
from tests.support.statements import meanwhile

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
BOTH = {"c2": False, "c1": True}


@pytest.fixture(autouse=True)
def _cells(db: None) -> None:
    Cell.objects.bulk_create([Cell(id="c1"), Cell(id="c2")])


def holders() -> dict[str, str]:
    return dict(Lease.objects.values_list("cell_id", "holder"))


def test_leases_of_all_cells_are_held_within_the_change_and_released():
    with changing(BOTH, "a move", NOW) as ours:
        assert ours
        assert holders() == {"c1": "provision", "c2": "provision"}
    assert holders() == {"c1": "", "c2": ""}


def test_refused_lease_leaves_none_held():
    acquire("c2", "deploy", "release 2", NOW)
    with changing(BOTH, "a move", NOW) as ours:
        assert not ours
    assert holders() == {"c1": "", "c2": "deploy"}


@pytest.mark.parametrize(("unwell", "may"), [("c1", True), ("c2", False)])
def test_unstable_cell_blocks_only_changes_that_do_not_protect_it(unwell: str, may: bool):
    CellVerdict.objects.create(cell_id=unwell, state="unstable", reasons=["gone"], since=NOW, at=NOW)
    with changing(BOTH, "a move", NOW) as ours:
        assert ours is may


@pytest.mark.django_db(transaction=True)
def test_stalled_controller_that_lost_the_cell_writes_nothing_and_continues():
    def taken() -> None:
        assert isinstance(acquire("c1", "scale", "lanes", NOW + ONE_CHANGE), Lease)

    with changing({"c1": False}, "the step before", NOW) as ours:
        assert ours
    with meanwhile(1, taken, after="mgmt_lease"), changing({"c1": False}, "a step of a ramp", NOW) as ours:
        assert not ours
    assert holders() == {"c1": "scale"}


def test_failed_change_writes_nothing_and_leaves_no_lease_held():
    def fail() -> None:
        with changing(BOTH, "a move", NOW):
            Cell.objects.filter(id="c1").update(version=7)
            raise LeaseLostError

    with pytest.raises(LeaseLostError):
        fail()
    assert (holders(), Cell.objects.get(id="c1").version) == ({"c1": "", "c2": ""}, 1)
