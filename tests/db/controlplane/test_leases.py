"""The lease of a cell on Postgres: one holder, safe take-over, and nothing written by who lost it."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from controlplane.interlocks import Refusal
from controlplane.leases import LASTS, LeaseLostError, cell_states, fenced, give_back, keep, take
from mgmt.models import Cell, Lease, User, Verdict
from mgmt.services import pause_controller

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
LATER = NOW + LASTS


@pytest.fixture
def cell(db: None) -> Cell:
    return Cell.objects.create(id="c1")


def taken(got: Lease | Refusal) -> Lease:
    assert isinstance(got, Lease), got
    return got


def test_a_free_cell_is_taken_and_its_fence_rises_with_the_token(cell: Cell):
    first = taken(take("c1", "provision", "step to 5 %", NOW))
    assert give_back(first)
    second = taken(take("c1", "deploy", "release 2", NOW))
    cell.refresh_from_db()
    assert (first.token, second.token, cell.fence) == (1, 2, 2)


def test_a_taken_cell_is_refused_to_everybody_with_what_is_done_there(cell: Cell):
    taken(take("c1", "deploy", "release 2", NOW))
    for controller in ("provision", "deploy", "scale"):
        refusal = take("c1", controller, "x", NOW, protective=True)
        assert isinstance(refusal, Refusal)
        assert refusal.why == "deploying is changing cell c1: release 2"


def test_one_that_ran_out_is_taken_over_and_its_holder_writes_nothing_any_more(cell: Cell):
    old = taken(take("c1", "scale", "2 lanes", NOW))
    new = taken(take("c1", "provision", "step to 5 %", LATER))
    with pytest.raises(LeaseLostError), fenced(old):
        Cell.objects.filter(id="c1").update(lanes={})
    assert Cell.objects.filter(id="c1", fence__lte=old.token).update(fence=old.token) == 0
    assert (keep(old, LATER), give_back(old)) == (False, False)
    with fenced(new):
        Cell.objects.filter(id="c1").update(epoch=7)
    assert Cell.objects.get().epoch == 7
    assert Lease.objects.get().holder == "provision"


def test_one_that_is_kept_does_not_run_out(cell: Cell):
    lease = taken(take("c1", "scale", "2 lanes", NOW))
    assert keep(lease, LATER - timedelta(seconds=1))
    assert isinstance(take("c1", "deploy", "x", LATER), Refusal)


def test_one_that_ran_out_and_that_nobody_took_is_still_good(cell: Cell):
    lease = taken(take("c1", "scale", "2 lanes", NOW))
    with fenced(lease):
        assert keep(lease, LATER + timedelta(seconds=5))


def test_one_that_was_given_back_is_not_kept(cell: Cell):
    lease = taken(take("c1", "scale", "2 lanes", NOW))
    assert (give_back(lease), give_back(lease), keep(lease, NOW)) == (True, False, False)


def test_what_the_rows_say_is_what_the_interlock_hears(cell: Cell, alice: User):
    Verdict.objects.create(cell=cell, state="unstable", reasons=["lanes are silent"], since=NOW, at=NOW)
    refusal = take("c1", "deploy", "x", NOW)
    assert isinstance(refusal, Refusal)
    assert "lanes are silent" in refusal.why
    pause_controller(controller="deploy", cell=cell, reason="audit", until=None, by=alice, now=NOW)
    pause_controller(controller="deploy", cell=None, reason="freeze", until=LATER, by=alice, now=NOW)
    assert [pause.reason for pause in cell_states(NOW)["c1"].pauses] == ["freeze", "audit"]
    assert [pause.reason for pause in cell_states(LATER)["c1"].pauses] == ["audit"]
    assert not Lease.objects.exclude(holder="").exists()


@pytest.mark.django_db(transaction=True)
def test_of_many_who_ask_at_once_one_gets_it():
    Cell.objects.create(id="c1")
    got: list[Lease | Refusal] = []
    gate = threading.Barrier(6)

    def ask() -> None:
        gate.wait()
        got.append(take("c1", "provision", "x", NOW))
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(gate.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [type(one).__name__ for one in got].count("Lease") == 1
