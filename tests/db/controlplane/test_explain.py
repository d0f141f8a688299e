"""`manage.py explain`: in words, what keeps a pipe or a cell from moving on, and when it is looked at again."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from controlplane.leases import take
from dataplane.ledger.breakdown import Slice
from mgmt.models import Cell, Pipe, ScaleGroup, User, Verdict
from mgmt.queries.span import bucket_at
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


def test_a_paused_controller_says_who_paused_it_and_when_it_asks_again(placed: Pipe, alice: User):
    reason = "provisioning is paused by alice: audit"
    placed.revisions.update(state_reason=reason)
    pause_controller(controller="provision", cell=None, reason="audit", until=None, by=alice, now=timezone.now())
    said = explained("orders")
    assert f"revision 1 is requested: {reason}; the Provisioner looks again every second" in said
    assert "provisioning: not now, for provisioning is paused by alice: audit; again when the pause ends" in said
    assert "deploying: nothing stands against it" in said
    assert "nothing was delivered in the last 15 minutes" in said


def test_an_unstable_cell_says_why_and_that_it_may_be_protected(placed: Pipe):
    now = timezone.now()
    Verdict.objects.create(cell_id="c1", state="unstable", reasons=["process-0 is silent"], since=now, at=now)
    said = explained("c1")
    assert ": process-0 is silent\n" in said
    assert "again when the cell is stable again; to protect the cell it may all the same" in said


def test_a_cell_that_is_being_changed_says_by_whom(placed: Pipe):
    take("c1", "deploy", "release 7", timezone.now())
    assert "scaling: not now, for deploying is changing cell c1: release 7; again when that is done" in explained("c1")


def test_why_lanes_are_as_many_as_they_are_is_said(placed: Pipe):
    ScaleGroup.objects.create(cell_id="c1", kind="process", maximum=4, why="a trial has shown that more do not help")
    assert "process lanes, 1 to 4 of them: a trial has shown that more do not help" in explained("orders")


def test_a_destination_that_holds_and_the_slowest_hop_are_named(placed: Pipe):
    go_live(placed)
    truth, bucket = Truth(placed), bucket_at(timezone.now()) - 1
    truth.lag(bucket, "transmit:crm", "out", [40_000])
    truth.delivered(bucket, {Slice.INGEST: 2_000, Slice.RETRY: 30_000, Slice.TRANSMIT: 8_000})
    placed.destinations.update(state="suspended", state_cause="rejected", state_reason="answered 401")
    said = explained(placed.id)
    assert "destination crm is suspended since" in said
    assert "answered 401; it holds" in said
    assert "95 of 100 arrived within 4" in said
    assert "most of the time since ingest: retry wait (75%)" in said
    assert "revision 1 is live\n" in said


@pytest.mark.django_db
def test_what_nobody_knows_is_said():
    with pytest.raises(CommandError, match="neither a cell nor a pipe"):
        explained("nothing")
