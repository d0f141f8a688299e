"""The Provisioner decides from a snapshot alone: each test is one situation and the actions in it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec import structs

from controlplane.compute.port import DesiredApplication
from controlplane.control_topic import PublishedRecord
from controlplane.interlocks import CellState, LeaseView, PauseView, Refusal, VerdictView
from controlplane.provisioner.decide import (
    AnnotateRevision,
    EnsureTopics,
    GoLive,
    MarkPublished,
    PlacePipe,
    PublishRecords,
    RaiseShare,
    RollBack,
    StartRamp,
    StopApplication,
    SubmitApplication,
    SupersedeRevision,
    decide,
)
from controlplane.provisioner.desired_state import wanted_versions
from controlplane.provisioner.ramping import RampProgress
from controlplane.provisioner.snapshot import (
    BelievedHeartbeat,
    CellSnapshot,
    PipePlacement,
    ProvisionerSnapshot,
    RevisionSnapshot,
    VersionedRow,
)
from mgmt.cells.placement import CellCapacity, NewPipe
from mgmt.ramps.queries import RampFigures

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
MASTER = "local[16,1000]"
RELEASE = "0123456789abcdef"
ASKED = DesiredApplication("c1", 1, MASTER, RELEASE)
CELL = CellSnapshot("c1", 1, 1, bound=True, desired=ASKED, release=RELEASE)
PIPE = PipePlacement("p1", 2, active=True, cell="c1")
KEY = VersionedRow("p1", "digest", 1)
DESTINATION = VersionedRow("p1", "crm", 1)
BUSY = {"p1": 1_000_000}


def beat(writer: str, kind: str, offset: int, **changes: Any) -> BelievedHeartbeat:
    fields = {"cell": "" if kind == "ingest" else "c1", "epoch": 1, "state": "running"} | changes
    return BelievedHeartbeat(writer=writer, kind=kind, table_offset=offset, **fields)


def all_hold(offset: int) -> list[BelievedHeartbeat]:
    return [
        beat("process-0", "process", offset),
        beat("transmit-0", "transmit", offset),
        beat("ingest-1", "ingest", offset),
    ]


def snapshot(**changes: Any) -> ProvisionerSnapshot:
    fields: dict[str, Any] = {
        "cells": [CELL],
        "pipes": [PIPE],
        "revisions": [],
        "keys": [KEY],
        "destinations": [DESTINATION],
        "heartbeats": [],
        "published": {},
        "master": MASTER,
    }
    return ProvisionerSnapshot(**fields | changes)


def all_published(before: ProvisionerSnapshot) -> ProvisionerSnapshot:
    """Return the same snapshot with all wanted records published: the n-th record at offset n."""
    published = {
        key: PublishedRecord(version, offset) for offset, (key, version) in enumerate(wanted_versions(before).items())
    }
    return snapshot(**{name: getattr(before, name) for name in before.__struct_fields__} | {"published": published})


def revision(number: int, state: str, **changes: Any) -> RevisionSnapshot:
    return RevisionSnapshot(number, "p1", number, state, **changes)


def test_unplaced_pipes_follow_the_placement_each_after_the_one_before_it():
    cells = [
        CELL,
        CellSnapshot("c2", 1, 1, bound=True, desired=DesiredApplication("c2", 1, MASTER, RELEASE), release=RELEASE),
    ]
    pipes = [PIPE, PipePlacement("p2", 1, True, None), PipePlacement("p3", 1, True, None)]
    asked = {
        "to_place": [NewPipe("p2", "t1"), NewPipe("p3", "t1")],
        "capacities": [CellCapacity("c1", 1), CellCapacity("c2")],
    }
    placed = [a for a in decide(snapshot(cells=cells, pipes=pipes, **asked)) if isinstance(a, PlacePipe)]
    assert placed == [PlacePipe("p2", "c2"), PlacePipe("p3", "c1")]


def test_dedicated_cell_accepts_only_pipes_of_its_tenant():
    pipes = [PipePlacement("p2", 1, True, None), PipePlacement("p3", 1, True, None)]
    asked = {
        "to_place": [NewPipe("p2", "t1"), NewPipe("p3", "t2")],
        "capacities": [CellCapacity("c1", 9), CellCapacity("own")],
    }
    placed = [a for a in decide(snapshot(pipes=pipes, dedicated={"own": "t1"}, **asked)) if isinstance(a, PlacePipe)]
    assert placed == [PlacePipe("p2", "own"), PlacePipe("p3", "c1")]


def test_sleeping_cell_has_no_application_and_a_woken_one_gets_a_new_one():
    asleep = structs.replace(CELL, asleep=True)
    assert [a for a in decide(snapshot(cells=[asleep])) if isinstance(a, StopApplication | SubmitApplication)] == [
        StopApplication("c1")
    ]
    stopped = structs.replace(asleep, desired=None)
    assert not [a for a in decide(snapshot(cells=[stopped])) if isinstance(a, StopApplication | SubmitApplication)]
    woken = structs.replace(stopped, asleep=False, epoch=2)
    assert SubmitApplication(structs.replace(ASKED, epoch=2)) in decide(snapshot(cells=[woken]))


def test_no_lane_has_to_hold_records_published_to_a_sleeping_cell():
    asleep = structs.replace(CELL, asleep=True, desired=None)
    published = all_published(snapshot(cells=[asleep], revisions=[revision(1, "ramping", published_offset=5)]))
    found = decide(structs.replace(published, heartbeats=[beat("ingest-1", "ingest", 9)]))
    assert found == [GoLive(1)]
    assert decide(published) == [AnnotateRevision(1, "waiting for ingest: no replica has reported in the last seconds")]


def test_pipe_without_a_cell_waits_and_reports_it():
    found = decide(snapshot(cells=[], pipes=[PipePlacement("p1", 1, True, None)], revisions=[revision(1, "requested")]))
    assert found == [AnnotateRevision(1, "waiting for a cell with room")]


def test_unbound_cell_gets_topics_and_is_not_submitted_yet():
    cell = CellSnapshot("c1", 1, 1, bound=False, desired=None, release=RELEASE)
    found = decide(snapshot(cells=[cell], pipes=[]))
    assert found == [EnsureTopics("c1")]


@pytest.mark.parametrize(
    "desired",
    [
        pytest.param(None, id="nothing asked for"),
        pytest.param(DesiredApplication("c1", 0, MASTER, RELEASE), id="an older epoch asked for"),
        pytest.param(DesiredApplication("c1", 1, "spark://elsewhere:7077", RELEASE), id="another master asked for"),
    ],
)
def test_compute_gets_the_application_of_the_row(desired: DesiredApplication | None):
    cell = CellSnapshot("c1", 1, 1, bound=True, desired=desired, release=RELEASE)
    assert SubmitApplication(ASKED) in decide(snapshot(cells=[cell]))


def test_cell_without_a_release_runs_nothing_and_reports_the_reason():
    cell = CellSnapshot("c1", 1, 1, bound=True, desired=None, release="")
    found = decide(snapshot(cells=[cell], revisions=[revision(1, "requested")]))
    assert AnnotateRevision(1, "waiting until cell c1 has a release of the data plane") in found
    assert not [a for a in found if isinstance(a, SubmitApplication | StartRamp)]


def test_cell_with_recreated_topics_is_left_unchanged():
    cell = CellSnapshot("c1", 1, 1, bound=True, desired=None, release=RELEASE, problem="topic x was deleted")
    found = decide(snapshot(cells=[cell], revisions=[revision(1, "requested")]))
    assert AnnotateRevision(1, "cell c1: topic x was deleted") in found
    assert not [a for a in found if isinstance(a, SubmitApplication | StartRamp)]


def test_first_publish_has_plan_and_destination_before_the_key_and_no_pipe():
    found = decide(snapshot(revisions=[revision(1, "requested")]))
    assert PublishRecords(["cell/c1", "plan/p1@1", "destination/p1/crm", "key/digest"]) in found
    assert AnnotateRevision(1, "publishing to cell c1") in found


def test_first_revision_ramps_as_soon_as_it_is_published():
    found = decide(all_published(snapshot(revisions=[revision(1, "requested")])))
    assert found == [MarkPublished(1, 3), StartRamp(1)]


def test_ramping_revision_adds_the_record_of_its_pipe():
    assert "pipe/p1" in wanted_versions(snapshot(revisions=[revision(1, "ramping")]))


def test_second_revision_waits_until_all_hold_its_plan():
    rows = [revision(1, "live"), revision(2, "requested")]
    found = decide(all_published(snapshot(revisions=rows, heartbeats=all_hold(3))))
    assert found == [
        MarkPublished(2, 4),
        AnnotateRevision(2, "waiting for process-0: it has read control records up to 3 of 4"),
    ]
    found = decide(all_published(snapshot(revisions=rows, heartbeats=all_hold(4), recently_ramped=BUSY)))
    assert found == [MarkPublished(2, 4), StartRamp(2, share=1)]


def test_revision_that_takes_all_keys_at_once_does_not_ramp():
    rows = [revision(1, "live"), msgspec.structs.replace(revision(2, "requested"), at_once=True)]
    found = decide(all_published(snapshot(revisions=rows, heartbeats=all_hold(4), recently_ramped=BUSY)))
    assert StartRamp(2, share=0) in found


@pytest.mark.parametrize(("recent", "share"), [({}, 0), ({"p1": 100}, 0), ({"p1": 5_000}, 5), (BUSY, 1)])
def test_ramp_starts_at_a_share_with_enough_traffic_to_compare(recent: dict[str, int], share: int):
    rows = [revision(1, "live"), revision(2, "requested")]
    found = decide(all_published(snapshot(revisions=rows, heartbeats=all_hold(4), recently_ramped=recent)))
    assert StartRamp(2, share) in found


def test_traffic_stays_with_the_first_revision_while_the_second_waits():
    from controlplane.provisioner.desired_state import weights_by_pipe

    assert weights_by_pipe([revision(1, "live"), revision(2, "requested")]) == {"p1": [(1, 100)]}
    assert weights_by_pipe([revision(1, "live"), revision(2, "ramping")]) == {"p1": [(2, 100)]}
    assert weights_by_pipe([revision(1, "live"), revision(2, "ramping")], {2: 5}) == {"p1": [(2, 5), (1, 95)]}
    assert weights_by_pipe([revision(1, "live"), revision(2, "ramping")], {2: 100}) == {"p1": [(2, 100), (1, 0)]}


RAMPING = [revision(1, "live"), revision(2, "ramping", published_offset=6)]
WELL = RampFigures(taken=1_000, p95_us=40_000)
KEPT = {"ramping": msgspec.to_builtins(WELL), "stable": msgspec.to_builtins(WELL)}


def at_a_step(**changes: Any) -> ProvisionerSnapshot:
    """Return a snapshot of revision 2 at 5 % of the keys, its step long enough for the next."""
    began = NOW - timedelta(seconds=31)
    ramp = RampProgress(2, 1, 5, began, "", WELL, WELL)
    fields: dict[str, Any] = {"revisions": RAMPING, "heartbeats": all_hold(99), "ramps": {2: ramp}, "now": NOW}
    return all_published(snapshot(**fields | changes))


def test_ramp_continues_after_a_good_step():
    assert decide(at_a_step()) == [RaiseShare(2, 25, KEPT)]


def test_ramp_at_all_keys_becomes_live():
    whole = RampProgress(2, 1, 100, NOW - timedelta(seconds=31), "", WELL, WELL)
    assert decide(at_a_step(ramps={2: whole})) == [GoLive(2, KEPT)]


def test_ramp_waits_until_all_hold_its_weights():
    (found,) = decide(at_a_step(heartbeats=all_hold(5)))
    assert isinstance(found, AnnotateRevision)


def test_ramp_of_a_paused_pipe_keeps_its_share():
    paused = PipePlacement("p1", 2, active=False, cell="c1")
    assert decide(at_a_step(pipes=[paused])) == [
        AnnotateRevision(2, "at 5 % of the keys until the pipe is active again")
    ]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="at any time"),
        pytest.param({"heartbeats": []}, id="while no lane is heard of"),
        pytest.param({"pipes": [PipePlacement("p1", 2, active=False, cell="c1")]}, id="while the pipe is paused"),
        pytest.param(
            {"cells": [structs.replace(CELL, problem="a topic was deleted")]},
            id="while its cell has a problem",
        ),
    ],
)
def test_ramp_with_failing_messages_is_rolled_back(changes: dict[str, Any]):
    bad = RampProgress(2, 1, 5, NOW, "", RampFigures(taken=40, failed=12), WELL)
    (found,) = decide(at_a_step(ramps={2: bad}, **changes))
    assert isinstance(found, RollBack)
    assert found.reason.startswith("12 of its 40 messages failed at 5 % of the keys")


@pytest.mark.parametrize(
    ("heartbeats", "reason"),
    [
        pytest.param([], "waiting for cell c1: no process lane has reported in the last seconds", id="nothing runs"),
        pytest.param(
            all_hold(9)[:1] + all_hold(9)[2:],
            "waiting for cell c1: no transmit lane has reported in the last seconds",
            id="no transmit lane",
        ),
        pytest.param(
            all_hold(9)[:2], "waiting for ingest: no replica has reported in the last seconds", id="no ingest"
        ),
        pytest.param(
            [*all_hold(9), beat("ingest-2", "ingest", 1)],
            "waiting for ingest-2: it has read control records up to 1 of 5",
            id="one replica is behind",
        ),
        pytest.param(
            [beat("process-0", "process", 9, epoch=0), *all_hold(9)[1:]],
            "waiting for cell c1: no process lane has reported in the last seconds",
            id="a lane of an older epoch does not count",
        ),
        pytest.param(
            [beat("process-0", "process", 9, state="starting"), *all_hold(9)[1:]],
            "waiting for cell c1: no process lane has reported in the last seconds",
            id="a starting lane does not count as running",
        ),
        pytest.param(
            [*all_hold(9), beat("process-1", "process", 0, state="starting")],
            "waiting for process-1: it has read control records up to 0 of 5",
            id="but a starting lane must hold it too",
        ),
    ],
)
def test_ramping_revision_reports_what_it_waits_for(heartbeats: list[BelievedHeartbeat], reason: str):
    found = decide(
        all_published(snapshot(revisions=[revision(1, "ramping", published_offset=5)], heartbeats=heartbeats))
    )
    assert found == [AnnotateRevision(1, reason)]


def test_ended_lane_delays_no_revision():
    heartbeats = [*all_hold(5), beat("process-1", "process", 0, state="failed"), beat("driver", "driver", 0)]
    found = decide(
        all_published(snapshot(revisions=[revision(1, "ramping", published_offset=5)], heartbeats=heartbeats))
    )
    assert found == [GoLive(1)]


def test_unchanged_reason_is_not_written_again():
    row = revision(
        1, "ramping", published_offset=5, reason="waiting for ingest: no replica has reported in the last seconds"
    )
    assert decide(all_published(snapshot(revisions=[row], heartbeats=all_hold(5)[:2]))) == []


def test_newer_request_supersedes_an_older_one():
    rows = [revision(1, "live"), revision(2, "requested"), revision(3, "requested")]
    found = decide(all_published(snapshot(revisions=rows, heartbeats=all_hold(99), recently_ramped=BUSY)))
    assert found[0] == SupersedeRevision(2, 3)
    assert found[-1] == StartRamp(3, share=1)


def test_live_pipe_without_changes_needs_no_action():
    assert decide(all_published(snapshot(revisions=[revision(1, "live"), revision(0, "retired")]))) == []


def test_revoked_key_is_published_again():
    rows = [revision(1, "live")]
    before = all_published(snapshot(revisions=rows))
    after = snapshot(revisions=rows, keys=[VersionedRow("p1", "digest", 2)], published=before.published)
    assert decide(after) == [PublishRecords(["key/digest"])]


def test_plan_of_a_retired_revision_is_still_wanted():
    assert "plan/p1@1" in wanted_versions(snapshot(revisions=[revision(1, "retired"), revision(2, "live")]))


def test_unstable_cell_freezes_a_ramp_and_prevents_no_rollback():
    unwell = CellState("c1", [], None, VerdictView("unstable", ["process-0 has sent no heartbeat"], NOW, NOW), NOW)
    (found,) = decide(at_a_step(states={"c1": unwell}))
    assert isinstance(found, AnnotateRevision)
    assert found.refusal
    assert (found.refusal.kind, found.refusal.why) == (
        "cell-unstable",
        "cell c1 is unstable since 2026-11-21 12:00:00 UTC: process-0 has sent no heartbeat",
    )
    assert found.reason == "the cell is recovering from a fault; the change continues when it is stable"
    bad = RampProgress(2, 1, 5, NOW, "", RampFigures(taken=40, failed=12), WELL)
    (found,) = decide(at_a_step(states={"c1": unwell}, ramps={2: bad}))
    assert isinstance(found, RollBack)


def test_rollback_of_a_ramp_waits_for_another_change_of_the_cell_to_end():
    lease = LeaseView("scale", "one lane more", NOW + timedelta(seconds=20))
    bad = RampProgress(2, 1, 5, NOW, "", RampFigures(taken=40, failed=12), WELL)
    (found,) = decide(at_a_step(states={"c1": CellState("c1", [], lease, None, NOW)}, ramps={2: bad}))
    assert isinstance(found, AnnotateRevision)


@pytest.mark.parametrize("state", ["requested", "ramping"])
def test_revision_waits_while_provisioning_is_paused_and_names_the_author_of_the_pause(state: str):
    paused = CellState("c1", [PauseView("provision", "admin", "audit of the books")], None, None, NOW)
    before = all_published(snapshot(revisions=[revision(1, state)], states={"c1": paused}))
    found = decide(structs.replace(before, heartbeats=all_hold(99)))
    said = "provisioning is paused by admin: audit of the books"
    assert [action for action in found if not isinstance(action, MarkPublished)] == [
        AnnotateRevision(1, said, Refusal("paused", said, "when the pause ends"))
    ]
    once = structs.replace(before, revisions=[revision(1, state, published_offset=found[0].offset, reason=said)])  # type: ignore[union-attr]
    assert decide(structs.replace(once, heartbeats=all_hold(99))) == []
