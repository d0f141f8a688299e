"""The Provisioner changes a cell under its lease; refusals are shown and recorded in the audit."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from controlplane.interlocks import Refusal
from controlplane.leases import acquire
from controlplane.provisioner.act import CellChange, annotate_revision, change_cell, go_live, start_ramp
from controlplane.provisioner.decide import AnnotateRevision
from mgmt.models import Cell, ControlAction, Lease, Pipe, PipeRevision, User
from mgmt.services import pause_controller

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
START = CellChange("start-ramp", partial(start_ramp, share=0))
LIVE = CellChange("go-live", partial(go_live, figures={}))


@pytest.fixture
def revision(pipe: Pipe) -> PipeRevision:
    pipe.cell = Cell.objects.create(id="c1")
    pipe.save()
    return pipe.revisions.get()


def audit() -> list[tuple[str, str, str]]:
    rows = ControlAction.objects.filter(controller="provision").order_by("id")
    return [(row.action, row.outcome, row.reason) for row in rows]


def test_each_step_is_one_lease_and_one_audit_row(revision: PipeRevision):
    change_cell(revision.id, START, NOW)
    change_cell(revision.id, LIVE, NOW)
    revision.refresh_from_db()
    assert revision.state == "live"
    assert audit() == [("start-ramp", "done", ""), ("go-live", "done", "")]
    lease = Lease.objects.get()
    assert (lease.holder, lease.token, Cell.objects.get().fence) == ("", 2, 2)


def test_completed_step_is_neither_repeated_nor_recorded_again(revision: PipeRevision):
    for _ in range(2):
        change_cell(revision.id, START, NOW)
    assert audit() == [("start-ramp", "done", "")]


def test_nothing_is_written_while_another_controller_changes_the_cell(revision: PipeRevision):
    acquire("c1", "deploy", "release 2", NOW)
    change_cell(revision.id, START, NOW)
    revision.refresh_from_db()
    assert (revision.state, Pipe.objects.get().version, audit()) == ("requested", 1, [])


def test_pause_between_snapshot_and_action_is_respected(revision: PipeRevision, alice: User):
    pause_controller(controller="provision", cell=None, reason="x", until=NOW + timedelta(hours=1), by=alice, now=NOW)
    change_cell(revision.id, START, NOW)
    revision.refresh_from_db()
    assert revision.state == "requested"


def test_refusal_is_recorded_and_mere_waiting_is_not(revision: PipeRevision):
    annotate_revision(AnnotateRevision(revision.id, "publishing to cell c1"), NOW)
    refusal = Refusal("cell-unstable", "cell c1 is unstable: process-0 has sent no heartbeat", "when it is stable")
    annotate_revision(AnnotateRevision(revision.id, refusal.public_reason, refusal), NOW)
    revision.refresh_from_db()
    assert revision.state_reason == "the cell is recovering from a fault; the change continues when it is stable"
    assert audit() == [("ramp", "refused", "cell c1 is unstable: process-0 has sent no heartbeat")]
