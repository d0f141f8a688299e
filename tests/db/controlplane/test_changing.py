"""A change of several cells: all of their leases or none, and all of them are given back."""

from datetime import UTC, datetime

import pytest

from controlplane.leases import LeaseLostError, take
from controlplane.provisioner.changing import ONE_CHANGE, changing
from mgmt.models import Cell, Lease, Verdict
from tests.rig.statements import meanwhile

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
BOTH = {"c2": False, "c1": True}


@pytest.fixture(autouse=True)
def _cells(db: None) -> None:
    Cell.objects.bulk_create([Cell(id="c1"), Cell(id="c2")])


def holders() -> dict[str, str]:
    return dict(Lease.objects.values_list("cell_id", "holder"))


def test_the_leases_of_all_are_held_within_and_given_back():
    with changing(BOTH, "a move", NOW) as ours:
        assert ours
        assert holders() == {"c1": "provision", "c2": "provision"}
    assert holders() == {"c1": "", "c2": ""}


def test_one_that_is_refused_leaves_none_held():
    take("c2", "deploy", "release 2", NOW)
    with changing(BOTH, "a move", NOW) as ours:
        assert not ours
    assert holders() == {"c1": "", "c2": "deploy"}


@pytest.mark.parametrize(("unwell", "may"), [("c1", True), ("c2", False)])
def test_an_unstable_cell_stops_only_what_does_not_protect_it(unwell: str, may: bool):
    Verdict.objects.create(cell_id=unwell, state="unstable", reasons=["gone"], since=NOW, at=NOW)
    with changing(BOTH, "a move", NOW) as ours:
        assert ours is may


@pytest.mark.django_db(transaction=True)
def test_who_stood_still_until_another_took_the_cell_writes_nothing_and_goes_on():
    def taken() -> None:
        assert isinstance(take("c1", "scale", "lanes", NOW + ONE_CHANGE), Lease)

    with changing({"c1": False}, "the step before", NOW) as ours:
        assert ours
    with meanwhile(1, taken, after="mgmt_lease"), changing({"c1": False}, "a step of a ramp", NOW) as ours:
        assert not ours
    assert holders() == {"c1": "scale"}


def test_a_change_that_fails_writes_nothing_and_leaves_none_held():
    def fail() -> None:
        with changing(BOTH, "a move", NOW):
            Cell.objects.filter(id="c1").update(version=7)
            raise LeaseLostError

    with pytest.raises(LeaseLostError):
        fail()
    assert (holders(), Cell.objects.get(id="c1").version) == ({"c1": "", "c2": ""}, 1)
