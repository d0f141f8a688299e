"""Lanes are added and removed under load: partitions are reassigned, nothing is lost or repeated."""

from collections import Counter
from collections.abc import Sized
from functools import partial

import pytest

from dataplane.ledger.bins import Bin
from dataplane.names import LaneKind
from tests.support.data_plane import DataPlane
from tests.support.patience import until

GROUPS: tuple[LaneKind, ...] = ("process", "transmit")


def shared(plane: DataPlane, lanes: int) -> bool:
    """Return True if so many lanes of both kinds run, with equal shares of all partitions and no other holder."""
    plane.heartbeats.refresh()
    beats = [beat for beat in plane.heartbeats.latest.values() if beat.state == "running"]
    fair = {kind: [len(beat.partitions) for beat in beats if beat.kind == kind] for kind in GROUPS}
    return all(held == [plane.partitions // lanes] * lanes for held in fair.values())


def scale_to(plane: DataPlane, lanes: int) -> None:
    plane.cluster.publish_cell(process=lanes, transmit=lanes)
    what = f"{lanes} lanes of each kind share the partitions"
    until(lambda: shared(plane, lanes), what, 120, seen=lambda: list(plane.heartbeats.latest.values()))


def more(got: Sized, count: int) -> bool:
    return len(got) > count


@pytest.mark.timeout(1_200)
def test_scaling_one_lane_to_two_and_back_under_load_loses_nothing(plane: DataPlane):
    key = plane.add_pipe("scaled", {"crm": {"url": plane.receiver.url("/scaled")}})
    got = plane.receiver.got["/scaled"]
    with plane.sender(key) as sender:
        for lanes in (2, 1):
            scale_to(plane, lanes)
            until(partial(more, got, len(got) + 200), f"messages pass {lanes} lanes", 60)
    whole = plane.settled("scaled", sender.positions, 120)
    assert whole.at("crm", Bin.DELIVERED) == sender.positions == whole.acked
    assert (whole.lost(), len(whole.unacked)) == (0, 0)
    assert Counter(received.position for received in got) == Counter(sender.positions), "each is delivered exactly once"
    assert not plane.offsets.fell, "committed offsets went backwards"
