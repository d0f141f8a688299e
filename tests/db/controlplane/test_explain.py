"""`manage.py explain`: the reasons that block a pipe or a cell, and the time of the next check."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from controlplane.leases import acquire
from dataplane.ledger.breakdown import Slice
from mgmt.ledger.queries.bucket_range import bucket_at
from mgmt.models import Cell, CellVerdict, Pipe, ScaleGroup, User
from mgmt.services import pause_controller
from tests.db.console.truth import Truth, go_live


@pytest.fixture
def placed(pipe: Pipe) -> Pipe:
    pipe.cell = Cell.objects.create(id="c1")
    pipe.save()
    return pipe


def explained(name: str) -> str:
    out = StringIO()
    call_command("explain", name, stdout=out)
    return out.getvalue()


def test_paused_controller_names_the_person_and_the_next_check(placed: Pipe, alice: User):
    reason = "provisioning is paused by alice: audit"
    placed.revisions.update(state_reason=reason)
    pause_controller(controller="provision", cell=None, reason="audit", until=None, by=alice, now=timezone.now())
    said = explained("orders")
    assert f"revision 1 is requested: {reason}; the Provisioner checks again every second" in said
    assert "provisioning: not now: provisioning is paused by alice: audit; retried when the pause ends" in said
    assert "deploying: allowed now" in said
    assert "nothing was delivered in the last 15 minutes" in said


def test_unstable_cell_shows_its_reasons_and_allows_protective_changes(placed: Pipe):
    now = timezone.now()
    CellVerdict.objects.create(cell_id="c1", state="unstable", reasons=["process-0 is silent"], since=now, at=now)
    said = explained("c1")
    assert ": process-0 is silent\n" in said
    assert "retried when the cell is stable again; protective actions are allowed" in said


def test_cell_under_change_names_the_controller(placed: Pipe):
    acquire("c1", "deploy", "release 7", timezone.now())
    said = explained("c1")
    assert "scaling: not now: deploying is changing cell c1: release 7; retried when that is done" in said
    assert "protective actions are allowed" not in said


def test_lane_count_is_explained(placed: Pipe):
    ScaleGroup.objects.create(cell_id="c1", kind="process", maximum=4, why="a trial showed that more do not help")
    assert "process lanes, 1 to 4 of them: a trial showed that more do not help" in explained("orders")


def test_holding_destination_and_slowest_hop_are_named(placed: Pipe):
    go_live(placed)
    truth, bucket = Truth(placed), bucket_at(timezone.now()) - 1
    truth.lag(bucket, "transmit:crm", "out", [40_000])
    truth.delivered(bucket, {Slice.INGEST: 2_000, Slice.RETRY: 30_000, Slice.TRANSMIT: 8_000})
    placed.destinations.update(state="suspended", state_cause="rejected", state_reason="returned 401")
    said = explained(placed.id)
    assert "destination crm is suspended since" in said
    assert "returned 401; its messages are held" in said
    assert "end to end p95 of the last 15 minutes: 4" in said
    assert "largest share of the time since ingest: retry wait (75%)" in said
    assert "revision 1 is live\n" in said


@pytest.mark.django_db
def test_unknown_name_is_reported():
    with pytest.raises(CommandError, match="neither a cell nor a pipe"):
        explained("nothing")
