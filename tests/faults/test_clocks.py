"""Wall clocks are wrong and jump: nothing is lost, nothing is repeated, and no message waits for them."""

import time
from collections import Counter
from collections.abc import Iterator

import pytest

from dataplane.ledger.bins import Bin
from tests.support.data_plane import DataPlane

HOUR_S = 3_600.0


@pytest.fixture
def clock_set_right(plane: DataPlane) -> Iterator[None]:
    yield
    plane.shift_clocks()


@pytest.mark.usefixtures("clock_set_right")
@pytest.mark.timeout(900)
def test_lanes_and_ingest_with_diverging_clocks_deliver_everything_once(plane: DataPlane):
    key = plane.add_pipe("clocks", {"crm": {"url": plane.receiver.url("/clocks")}})
    with plane.sender(key, 100) as sender:
        for off_s in (0.0, 2 * HOUR_S, -2 * HOUR_S, 60.0, -60.0, 0.0):
            plane.shift_clocks(lanes_s=off_s, ingest_s=-off_s)
            time.sleep(1.5)
    whole = plane.settled("clocks", sender.positions)
    got = Counter(received.position for received in plane.receiver.got["/clocks"])
    assert got == Counter(sender.positions)
    assert whole.at("crm", Bin.DELIVERED) == sender.positions == whole.acked
    assert whole.lost() == 0
    stamps = [int(received.headers["webhook-timestamp"]) for received in plane.receiver.got["/clocks"]]
    assert max(stamps) - min(stamps) > 3 * HOUR_S, "the lanes' clocks were wrong"
    buckets = {acked.bucket for acked in sender.acked}
    assert max(buckets) - min(buckets) > 3 * HOUR_S / 60, "the clocks of ingest were wrong"
    assert not plane.offsets.fell
