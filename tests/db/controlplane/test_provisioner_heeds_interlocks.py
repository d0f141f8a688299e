"""The Provisioner changes a cell under its lease, and what keeps it from that is said and noted."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from controlplane.leases import take
from controlplane.provisioner.act import Change, change_cell, go_live, say_why, start_ramp
from controlplane.provisioner.decide import Wait
from mgmt.models import Cell, ControlAction, Lease, Pipe, PipeRevision, User
from mgmt.services import pause_controller

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
START = Change("start-ramp", partial(start_ramp, share=0))
LIVE = Change("go-live", partial(go_live, figures={}))


@pytest.fixture
def revision(pipe: Pipe) -> PipeRevision:
    pipe.cell = Cell.objects.create(id="c1")
    pipe.save()
    return pipe.revisions.get()


def audit() -> list[tuple[str, str, str]]:
    rows = ControlAction.objects.filter(controller="provision").order_by("id")
    return [(row.action, row.outcome, row.reason) for row in rows]


def test_each_step_is_one_lease_and_one_line_of_the_audit(revision: PipeRevision):
    change_cell(revision.id, START, NOW)
    change_cell(revision.id, LIVE, NOW)
    revision.refresh_from_db()
    assert revision.state == "live"
    assert audit() == [("start-ramp", "done", ""), ("go-live", "done", "")]
    lease = Lease.objects.get()
    assert (lease.holder, lease.token, Cell.objects.get().fence) == ("", 2, 2)


def test_a_step_that_was_done_is_not_done_again_nor_noted(revision: PipeRevision):
    for _ in range(2):
        change_cell(revision.id, START, NOW)
    assert audit() == [("start-ramp", "done", "")]


def test_while_another_changes_the_cell_nothing_is_written(revision: PipeRevision):
    take("c1", "deploy", "release 2", NOW)
    change_cell(revision.id, START, NOW)
    revision.refresh_from_db()
    assert (revision.state, Pipe.objects.get().version, audit()) == ("requested", 1, [])


def test_a_pause_between_the_look_and_the_deed_is_heeded(revision: PipeRevision, alice: User):
    pause_controller(controller="provision", cell=None, reason="x", until=NOW + timedelta(hours=1), by=alice, now=NOW)
    change_cell(revision.id, START, NOW)
    revision.refresh_from_db()
    assert revision.state == "requested"


def test_what_is_refused_is_noted_and_what_only_waits_is_not(revision: PipeRevision):
    say_why(Wait(revision.id, "publishing to cell c1"), NOW)
    say_why(Wait(revision.id, "provisioning is paused by admin: audit", refused=True), NOW)
    revision.refresh_from_db()
    assert revision.state_reason == "provisioning is paused by admin: audit"
    assert audit() == [("ramp", "refused", "provisioning is paused by admin: audit")]
