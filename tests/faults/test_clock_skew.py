"""Wall clocks are wrong and jump: nothing is lost, nothing is repeated, and no message waits for them."""

import time
from collections import Counter
from collections.abc import Iterator
from functools import partial

import pytest

from dataplane.ledger.bins import Bin
from tests.support.data_plane import DataPlane
from tests.support.patience import until

HOUR_S = 3_600.0


@pytest.fixture
def clock_set_right(plane: DataPlane) -> Iterator[None]:
    yield
    plane.shift_clocks()


@pytest.mark.usefixtures("clock_set_right")
@pytest.mark.timeout(900)
def test_lanes_and_ingest_with_diverging_clocks_deliver_everything_once(plane: DataPlane):
    key = plane.add_pipe("clocks", {"crm": {"url": plane.receiver.url("/clocks")}})
    arrived = plane.receiver.got["/clocks"]

    def uses(off_s: float, received: int, acked: int) -> bool:
        """Return True if a message since then was ACKed by ingest's wrong clock, and one sent by that of a lane."""
        stamps = [int(one.headers["webhook-timestamp"]) - time.time() for one in arrived[received:]]
        minutes = [one.bucket - time.time() / 60 for one in sender.acked[acked:]]
        return any(abs(s - off_s) < 30 for s in stamps) and any(abs(m + off_s / 60) < 1.5 for m in minutes)

    with plane.sender(key, 100) as sender:
        for off_s in (0.0, 2 * HOUR_S, -2 * HOUR_S, 60.0, -60.0, 0.0):
            plane.shift_clocks(lanes_s=off_s, ingest_s=-off_s)
            until(partial(uses, off_s, len(arrived), len(sender.acked)), f"clocks that are wrong by {off_s} s", 30)
    whole = plane.settled("clocks", sender.positions)
    got = Counter(received.position for received in arrived)
    assert got == Counter(sender.positions)
    assert whole.at("crm", Bin.DELIVERED) == sender.positions == whole.acked
    assert whole.lost() == 0
    stamps = [int(received.headers["webhook-timestamp"]) for received in arrived]
    assert max(stamps) - min(stamps) > 3 * HOUR_S, "the lanes' clocks were wrong"
    buckets = {acked.bucket for acked in sender.acked}
    assert max(buckets) - min(buckets) > 3 * HOUR_S / 60, "the clocks of ingest were wrong"
    assert not plane.offsets.fell
