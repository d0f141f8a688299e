"""What is changed while messages are on their way: revisions switched to and fro, a destination removed under load."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from dataplane.ledger.bins import Bin
from dataplane.spec import PipeSpec, parse_pipe_spec
from dataplane.tables.records import PipeRecord, PlanRecord
from tests.rig.cluster import TENANT
from tests.rig.lane_plane import LanePlane
from tests.rig.plane import until

pytestmark = pytest.mark.timeout(400)
APART_S: Final = 10.0  # between the first and the last process that goes by a new record
ENOUGH: Final = 20  # messages of a revision that say that it is the one in use
WAITING: Final = 200
RATE: Final = 100.0


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LanePlane]:
    running = LanePlane(Path(tmp_path_factory.mktemp("changes")))
    running.wait_ready()
    yield running
    running.close()


def marking(url: str, revision: int) -> PipeSpec:
    """What leaves the revision's number at its first step and, in another field, at its last."""
    spec = {
        "sources": {"shop": {}},
        "destinations": {"crm": {"type": "http", "url": url}},
        "normalize": [{"op": "set", "path": "first", "value": revision}],
        "transform": {"crm": [{"op": "set", "path": "last", "value": revision}]},
    }
    return parse_pipe_spec(spec)


def switch(plane: LanePlane, times: int) -> None:
    """Two revisions of a pipe in turn, under load: each message met one of them, all of it, and arrived once."""
    pipe = f"switched-{times}"
    url, cluster, got = plane.receiver.url(f"/{pipe}"), plane.cluster, plane.receiver.got[f"/{pipe}"]
    key = plane.add_pipe(pipe, {"crm": {"url": url}})
    cluster.publish(*(PlanRecord(pipe, revision, marking(url, revision)) for revision in (2, 3)))

    def use(revision: int) -> None:
        before = len(got)
        cluster.publish(PipeRecord(pipe, cluster.version(), TENANT, "rig", cluster.cell, "active", [(revision, 100)]))

        def is_used() -> bool:
            return [json.loads(one.body).get("last") for one in got[before:]].count(revision) >= ENOUGH

        until(is_used, f"messages of revision {revision} arrive", APART_S + ENOUGH / RATE)

    with plane.sender(key, RATE) as sender:
        for number in range(times):
            use(2 + number % 2)
    whole = plane.settled(pipe, sender.positions)
    bodies = [json.loads(one.body) for one in got]
    assert all(body.get("first") == body.get("last") for body in bodies), "one met two revisions"
    assert {body.get("last") for body in bodies} >= {2, 3}
    assert Counter(one.position for one in got) == Counter(sender.positions), "each exactly once"
    assert whole.at("crm", Bin.DELIVERED) == sender.positions
    assert whole.lost() == 0


def test_each_message_sees_one_revision_however_often_it_is_switched(plane: LanePlane):
    switch(plane, 20)


@pytest.mark.long
def test_two_hundred_switches(plane: LanePlane):
    switch(plane, 200)


def test_a_destination_removed_under_load_cancels_what_waits_for_it_and_nothing_else(plane: LanePlane):
    plane.receiver.answers["/gone"] = 503
    gone = {"url": plane.receiver.url("/gone"), "retry": {"local_tries": 1, "delays_s": [5]}}
    key = plane.add_pipe("removed", {"gone": gone, "crm": {"url": plane.receiver.url("/stays")}})
    with plane.sender(key, RATE) as sender:
        until(lambda: len(plane.whole("removed").at("gone", Bin.RETRYING)) >= WAITING, "many wait for a retry", 60)
        plane.cluster.publish_destinations("removed", {"gone": gone}, state="removed")
        until(lambda: len(plane.whole("removed").at("gone", Bin.CANCELLED)) >= WAITING, "they are cancelled", 60)
        tried = len(plane.receiver.got["/gone"])
    whole = plane.settled("removed", sender.positions)
    assert whole.at("gone", Bin.CANCELLED) == sender.positions == whole.at("crm", Bin.DELIVERED)
    assert {one.position for one in plane.receiver.got["/stays"]} == sender.positions
    assert len(plane.receiver.got["/gone"]) == tried, "nothing is sent to it any more"
    assert whole.lost() == 0
