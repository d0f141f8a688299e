"""The Provisioner decides from a snapshot alone: each row of the table is one situation and what it does about it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from msgspec import structs

from controlplane.compute.port import Desired
from controlplane.control_topic import Published
from controlplane.interlocks import CellState, LeaseView, PauseView, VerdictView
from controlplane.provisioner.decide import (
    EnsureTopics,
    GoLive,
    MarkPublished,
    Place,
    Publish,
    RaiseShare,
    RollBack,
    StartRamp,
    Stop,
    Submit,
    Supersede,
    Wait,
    decide,
)
from controlplane.provisioner.ramping import RampView
from controlplane.provisioner.snapshot import Beat, CellView, PipeView, RevisionView, Snapshot, Versioned
from controlplane.provisioner.wanted import wanted_versions
from mgmt.provisioning.placing import CellRoom, NewPipe
from mgmt.queries.ramps import Figures

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
MASTER = "local[16,1000]"
RELEASE = "0123456789abcdef"
ASKED = Desired("c1", 1, MASTER, RELEASE)
CELL = CellView("c1", 1, 1, bound=True, desired=ASKED, release=RELEASE)
PIPE = PipeView("p1", 2, active=True, cell="c1")
KEY = Versioned("p1", "digest", 1)
DESTINATION = Versioned("p1", "crm", 1)
BUSY = {"p1": 1_000_000}


def beat(writer: str, kind: str, offset: int, **changes: Any) -> Beat:
    fields = {"cell": "" if kind == "ingest" else "c1", "epoch": 1, "state": "running"} | changes
    return Beat(writer=writer, kind=kind, table_offset=offset, **fields)


def all_hold(offset: int) -> list[Beat]:
    return [
        beat("process-0", "process", offset),
        beat("transmit-0", "transmit", offset),
        beat("ingest-1", "ingest", offset),
    ]


def snapshot(**changes: Any) -> Snapshot:
    fields: dict[str, Any] = {
        "cells": [CELL],
        "pipes": [PIPE],
        "revisions": [],
        "keys": [KEY],
        "destinations": [DESTINATION],
        "beats": [],
        "published": {},
        "master": MASTER,
    }
    return Snapshot(**fields | changes)


def all_published(before: Snapshot) -> Snapshot:
    """The same, with everything it asks for in the control topic: the n-th record at offset n."""
    published = {
        key: Published(version, offset) for offset, (key, version) in enumerate(wanted_versions(before).items())
    }
    return snapshot(**{name: getattr(before, name) for name in before.__struct_fields__} | {"published": published})


def revision(number: int, state: str, **changes: Any) -> RevisionView:
    return RevisionView(number, "p1", number, state, **changes)


def test_unplaced_pipes_go_where_placing_says_each_seeing_the_one_before_it():
    cells = [CELL, CellView("c2", 1, 1, bound=True, desired=Desired("c2", 1, MASTER, RELEASE), release=RELEASE)]
    pipes = [PIPE, PipeView("p2", 1, True, None), PipeView("p3", 1, True, None)]
    asked = {"to_place": [NewPipe("p2", "t1"), NewPipe("p3", "t1")], "rooms": [CellRoom("c1", 1), CellRoom("c2")]}
    placed = [a for a in decide(snapshot(cells=cells, pipes=pipes, **asked)) if isinstance(a, Place)]
    assert placed == [Place("p2", "c2"), Place("p3", "c1")]


def test_a_dedicated_cell_takes_its_tenants_pipes_and_nobody_elses():
    pipes = [PipeView("p2", 1, True, None), PipeView("p3", 1, True, None)]
    asked = {"to_place": [NewPipe("p2", "t1"), NewPipe("p3", "t2")], "rooms": [CellRoom("c1", 9), CellRoom("own")]}
    placed = [a for a in decide(snapshot(pipes=pipes, dedicated={"own": "t1"}, **asked)) if isinstance(a, Place)]
    assert placed == [Place("p2", "own"), Place("p3", "c1")]


def test_a_cell_that_sleeps_has_no_application_and_one_that_wakes_has_another():
    asleep = structs.replace(CELL, asleep=True)
    assert [a for a in decide(snapshot(cells=[asleep])) if isinstance(a, Stop | Submit)] == [Stop("c1")]
    stopped = structs.replace(asleep, desired=None)
    assert not [a for a in decide(snapshot(cells=[stopped])) if isinstance(a, Stop | Submit)]
    woken = structs.replace(stopped, asleep=False, epoch=2)
    assert Submit(structs.replace(ASKED, epoch=2)) in decide(snapshot(cells=[woken]))


def test_no_lane_has_to_hold_what_is_published_to_a_cell_that_sleeps():
    asleep = structs.replace(CELL, asleep=True, desired=None)
    published = all_published(snapshot(cells=[asleep], revisions=[revision(1, "ramping", published_offset=5)]))
    found = decide(structs.replace(published, beats=[beat("ingest-1", "ingest", 9)]))
    assert found == [GoLive(1)]
    assert decide(published) == [Wait(1, "waiting for ingest: no replica has reported in the last seconds")]


def test_without_a_cell_a_pipe_waits_and_says_so():
    found = decide(snapshot(cells=[], pipes=[PipeView("p1", 1, True, None)], revisions=[revision(1, "requested")]))
    assert found == [Wait(1, "waiting for a cell to be placed on")]


def test_an_unbound_cell_gets_topics_and_is_not_submitted_yet():
    cell = CellView("c1", 1, 1, bound=False, desired=None, release=RELEASE)
    found = decide(snapshot(cells=[cell], pipes=[]))
    assert found == [EnsureTopics("c1")]


@pytest.mark.parametrize(
    "desired",
    [
        pytest.param(None, id="nothing asked for"),
        pytest.param(Desired("c1", 0, MASTER, RELEASE), id="an older epoch asked for"),
        pytest.param(Desired("c1", 1, "spark://elsewhere:7077", RELEASE), id="another master asked for"),
    ],
)
def test_compute_is_asked_for_what_the_row_says(desired: Desired | None):
    cell = CellView("c1", 1, 1, bound=True, desired=desired, release=RELEASE)
    assert Submit(ASKED) in decide(snapshot(cells=[cell]))


def test_a_cell_without_a_release_runs_nothing_and_says_why():
    cell = CellView("c1", 1, 1, bound=True, desired=None, release="")
    found = decide(snapshot(cells=[cell], revisions=[revision(1, "requested")]))
    assert Wait(1, "waiting for cell c1 to be given a release of the data plane") in found
    assert not [a for a in found if isinstance(a, Submit | StartRamp)]


def test_a_cell_whose_topics_were_made_anew_is_left_alone():
    cell = CellView("c1", 1, 1, bound=True, desired=None, release=RELEASE, problem="topic x was deleted")
    found = decide(snapshot(cells=[cell], revisions=[revision(1, "requested")]))
    assert Wait(1, "cell c1: topic x was deleted") in found
    assert not [a for a in found if isinstance(a, Submit | StartRamp)]


def test_the_first_publish_holds_plan_and_destination_before_the_key_and_no_pipe():
    found = decide(snapshot(revisions=[revision(1, "requested")]))
    assert Publish(["cell/c1", "plan/p1@1", "destination/p1/crm", "key/digest"]) in found
    assert Wait(1, "publishing to cell c1") in found


def test_a_first_revision_ramps_as_soon_as_it_is_published():
    found = decide(all_published(snapshot(revisions=[revision(1, "requested")])))
    assert found == [MarkPublished(1, 3), StartRamp(1)]


def test_a_ramping_revision_gives_the_pipe_its_record():
    assert "pipe/p1" in wanted_versions(snapshot(revisions=[revision(1, "ramping")]))


def test_a_second_revision_waits_until_all_hold_its_plan():
    rows = [revision(1, "live"), revision(2, "requested")]
    found = decide(all_published(snapshot(revisions=rows, beats=all_hold(3))))
    assert found == [MarkPublished(2, 4), Wait(2, "waiting for process-0: it holds control records up to 3 of 4")]
    found = decide(all_published(snapshot(revisions=rows, beats=all_hold(4), recent=BUSY)))
    assert found == [MarkPublished(2, 4), StartRamp(2, share=1)]


@pytest.mark.parametrize(("recent", "share"), [({}, 0), ({"p1": 100}, 0), ({"p1": 5_000}, 5), (BUSY, 1)])
def test_a_ramp_begins_where_its_pipes_traffic_can_say_anything(recent: dict[str, int], share: int):
    rows = [revision(1, "live"), revision(2, "requested")]
    found = decide(all_published(snapshot(revisions=rows, beats=all_hold(4), recent=recent)))
    assert StartRamp(2, share) in found


def test_while_a_second_revision_waits_the_traffic_stays_with_the_first():
    from controlplane.provisioner.wanted import weights_by_pipe

    assert weights_by_pipe([revision(1, "live"), revision(2, "requested")]) == {"p1": [(1, 100)]}
    assert weights_by_pipe([revision(1, "live"), revision(2, "ramping")]) == {"p1": [(2, 100)]}
    assert weights_by_pipe([revision(1, "live"), revision(2, "ramping")], {2: 5}) == {"p1": [(2, 5), (1, 95)]}
    assert weights_by_pipe([revision(1, "live"), revision(2, "ramping")], {2: 100}) == {"p1": [(2, 100), (1, 0)]}


RAMPING = [revision(1, "live"), revision(2, "ramping", published_offset=6)]
WELL = Figures(taken=1_000, p95_us=40_000)
KEPT = {"ramping": msgspec.to_builtins(WELL), "stable": msgspec.to_builtins(WELL)}


def at_a_step(**changes: Any) -> Snapshot:
    """Revision 2 at 5 % of the keys, its step long enough for the next."""
    began = NOW - timedelta(seconds=31)
    ramp = RampView(2, 1, 5, began, "", WELL, WELL)
    fields: dict[str, Any] = {"revisions": RAMPING, "beats": all_hold(99), "ramps": {2: ramp}, "now": NOW}
    return all_published(snapshot(**fields | changes))


def test_a_ramp_goes_on_when_its_step_was_well():
    assert decide(at_a_step()) == [RaiseShare(2, 25, KEPT)]


def test_a_ramp_at_everything_goes_live():
    whole = RampView(2, 1, 100, NOW - timedelta(seconds=31), "", WELL, WELL)
    assert decide(at_a_step(ramps={2: whole})) == [GoLive(2, KEPT)]


def test_a_ramp_waits_until_all_hold_its_weights():
    (found,) = decide(at_a_step(beats=all_hold(5)))
    assert isinstance(found, Wait)


def test_a_ramp_of_a_paused_pipe_stays_where_it_is():
    paused = PipeView("p1", 2, active=False, cell="c1")
    assert decide(at_a_step(pipes=[paused])) == [Wait(2, "at 5 % of the keys until the pipe is active again")]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="at any time"),
        pytest.param({"beats": []}, id="while no lane is heard of"),
        pytest.param({"pipes": [PipeView("p1", 2, active=False, cell="c1")]}, id="while the pipe is paused"),
        pytest.param(
            {"cells": [structs.replace(CELL, problem="a topic was deleted")]},
            id="while its cell has a problem",
        ),
    ],
)
def test_a_ramp_whose_messages_fail_goes_back(changes: dict[str, Any]):
    bad = RampView(2, 1, 5, NOW, "", Figures(taken=40, failed=12), WELL)
    (found,) = decide(at_a_step(ramps={2: bad}, **changes))
    assert isinstance(found, RollBack)
    assert found.reason.startswith("12 of its 40 messages failed at 5 % of the keys")


@pytest.mark.parametrize(
    ("beats", "reason"),
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
            "waiting for ingest-2: it holds control records up to 1 of 5",
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
            "waiting for process-1: it holds control records up to 0 of 5",
            id="but a starting lane must hold it too",
        ),
    ],
)
def test_a_ramping_revision_waits_in_words(beats: list[Beat], reason: str):
    found = decide(all_published(snapshot(revisions=[revision(1, "ramping", published_offset=5)], beats=beats)))
    assert found == [Wait(1, reason)]


def test_a_lane_that_has_ended_holds_nobody_up():
    beats = [*all_hold(5), beat("process-1", "process", 0, state="failed"), beat("driver", "driver", 0)]
    found = decide(all_published(snapshot(revisions=[revision(1, "ramping", published_offset=5)], beats=beats)))
    assert found == [GoLive(1)]


def test_a_reason_that_stands_already_is_not_written_again():
    row = revision(
        1, "ramping", published_offset=5, reason="waiting for ingest: no replica has reported in the last seconds"
    )
    assert decide(all_published(snapshot(revisions=[row], beats=all_hold(5)[:2]))) == []


def test_a_newer_request_overtakes_an_older_one():
    rows = [revision(1, "live"), revision(2, "requested"), revision(3, "requested")]
    found = decide(all_published(snapshot(revisions=rows, beats=all_hold(99), recent=BUSY)))
    assert found[0] == Supersede(2, 3)
    assert found[-1] == StartRamp(3, share=1)


def test_a_live_pipe_at_rest_asks_for_nothing():
    assert decide(all_published(snapshot(revisions=[revision(1, "live"), revision(0, "retired")]))) == []


def test_a_revoked_key_is_published_again():
    rows = [revision(1, "live")]
    before = all_published(snapshot(revisions=rows))
    after = snapshot(revisions=rows, keys=[Versioned("p1", "digest", 2)], published=before.published)
    assert decide(after) == [Publish(["key/digest"])]


def test_the_plan_of_a_retired_revision_stays_wanted():
    assert "plan/p1@1" in wanted_versions(snapshot(revisions=[revision(1, "retired"), revision(2, "live")]))


def test_an_unstable_cell_freezes_a_ramp_and_keeps_none_from_going_back():
    unwell = CellState("c1", [], None, VerdictView("unstable", ["the lag grows"], NOW, NOW), NOW)
    (found,) = decide(at_a_step(states={"c1": unwell}))
    assert found == Wait(2, "cell c1 is unstable since 2026-11-21 12:00:00 UTC: the lag grows", refused=True)
    bad = RampView(2, 1, 5, NOW, "", Figures(taken=40, failed=12), WELL)
    (found,) = decide(at_a_step(states={"c1": unwell}, ramps={2: bad}))
    assert isinstance(found, RollBack)


def test_a_ramp_goes_back_after_another_change_to_the_cell_has_ended():
    lease = LeaseView("scale", "one lane more", NOW + timedelta(seconds=20))
    bad = RampView(2, 1, 5, NOW, "", Figures(taken=40, failed=12), WELL)
    (found,) = decide(at_a_step(states={"c1": CellState("c1", [], lease, None, NOW)}, ramps={2: bad}))
    assert isinstance(found, Wait)


@pytest.mark.parametrize("state", ["requested", "ramping"])
def test_a_revision_waits_while_provisioning_is_paused_and_says_who_paused_it(state: str):
    paused = CellState("c1", [PauseView("provision", "admin", "audit of the books")], None, None, NOW)
    before = all_published(snapshot(revisions=[revision(1, state)], states={"c1": paused}))
    found = decide(structs.replace(before, beats=all_hold(99)))
    said = "provisioning is paused by admin: audit of the books"
    assert [action for action in found if not isinstance(action, MarkPublished)] == [Wait(1, said, refused=True)]
    once = structs.replace(before, revisions=[revision(1, state, published_offset=found[0].offset, reason=said)])  # type: ignore[union-attr]
    assert decide(structs.replace(once, beats=all_hold(99))) == []
