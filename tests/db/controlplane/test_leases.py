"""Lease of a cell on Postgres: one holder, safe takeover, and no writes by a previous holder."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from controlplane.interlocks import Refusal
from controlplane.leases import LASTS, LeaseLostError, acquire, cell_states, fenced, release, renew
from mgmt.models import Cell, CellVerdict, Lease, User
from mgmt.services import pause_controller

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
LATER = NOW + LASTS


@pytest.fixture
def cell(db: None) -> Cell:
    return Cell.objects.create(id="c1")


def taken(got: Lease | Refusal) -> Lease:
    assert isinstance(got, Lease), got
    return got


def test_free_cell_is_leased_and_its_fence_rises_with_the_token(cell: Cell):
    first = taken(acquire("c1", "provision", "step to 5 %", NOW))
    assert release(first)
    second = taken(acquire("c1", "deploy", "release 2", NOW))
    cell.refresh_from_db()
    assert (first.token, second.token, cell.fence) == (1, 2, 2)


def test_leased_cell_is_refused_to_every_controller_with_the_current_change(cell: Cell):
    taken(acquire("c1", "deploy", "release 2", NOW))
    for controller in ("provision", "deploy", "scale"):
        refusal = acquire("c1", controller, "x", NOW, protective=True)
        assert isinstance(refusal, Refusal)
        assert refusal.why == "deploying is changing cell c1: release 2"


def test_expired_lease_is_transferred_and_its_old_holder_writes_nothing_more(cell: Cell):
    old = taken(acquire("c1", "scale", "2 lanes", NOW))
    new = taken(acquire("c1", "provision", "step to 5 %", LATER))
    with pytest.raises(LeaseLostError), fenced(old):
        Cell.objects.filter(id="c1").update(lanes={})
    assert Cell.objects.filter(id="c1", fence__lte=old.token).update(fence=old.token) == 0
    assert (renew(old, LATER), release(old)) == (False, False)
    with fenced(new):
        Cell.objects.filter(id="c1").update(epoch=7)
    assert Cell.objects.get().epoch == 7
    assert Lease.objects.get().holder == "provision"


def test_renewed_lease_does_not_expire(cell: Cell):
    lease = taken(acquire("c1", "scale", "2 lanes", NOW))
    assert renew(lease, LATER - timedelta(seconds=1))
    assert isinstance(acquire("c1", "deploy", "x", LATER), Refusal)


def test_expired_lease_without_a_new_holder_is_still_valid(cell: Cell):
    lease = taken(acquire("c1", "scale", "2 lanes", NOW))
    with fenced(lease):
        assert renew(lease, LATER + timedelta(seconds=5))


def test_released_lease_cannot_be_renewed(cell: Cell):
    lease = taken(acquire("c1", "scale", "2 lanes", NOW))
    assert (release(lease), release(lease), renew(lease, NOW)) == (True, False, False)


def test_interlock_receives_the_state_of_the_rows(cell: Cell, alice: User):
    CellVerdict.objects.create(cell=cell, state="unstable", reasons=["lanes are silent"], since=NOW, at=NOW)
    refusal = acquire("c1", "deploy", "x", NOW)
    assert isinstance(refusal, Refusal)
    assert "lanes are silent" in refusal.why
    pause_controller(controller="deploy", cell=cell, reason="audit", until=None, by=alice, now=NOW)
    pause_controller(controller="deploy", cell=None, reason="freeze", until=LATER, by=alice, now=NOW)
    assert [pause.reason for pause in cell_states(NOW)["c1"].pauses] == ["freeze", "audit"]
    assert [pause.reason for pause in cell_states(LATER)["c1"].pauses] == ["audit"]
    assert not Lease.objects.exclude(holder="").exists()


@pytest.mark.django_db(transaction=True)
def test_one_of_many_concurrent_requests_gets_the_lease():
    Cell.objects.create(id="c1")
    got: list[Lease | Refusal] = []
    gate = threading.Barrier(6)

    def ask() -> None:
        gate.wait()
        got.append(acquire("c1", "provision", "x", NOW))
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(gate.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [type(one).__name__ for one in got].count("Lease") == 1
