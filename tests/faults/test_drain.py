"""A graceful drain under load: the application exits with 0, nothing is lost and nothing is repeated."""

import time
from collections import Counter

import pytest

from dataplane.ledger.bins import Bin
from tests.support.data_plane import DataPlane
from tests.support.patience import until


@pytest.mark.timeout(1_800)
def test_drain_under_load_loses_nothing_and_repeats_nothing(plane: DataPlane):
    key = plane.add_pipe("drain", {"crm": {"url": plane.receiver.url("/drain")}})
    with plane.sender(key) as sender:
        until(lambda: len(plane.receiver.got["/drain"]) > 100, "work is under way", 60)
        ended = plane.drain_cell()
        plane.start_cell()
        time.sleep(2)
    assert "code=0" in ended
    whole = plane.settled("drain", sender.positions, 120)
    got = Counter(received.position for received in plane.receiver.got["/drain"])
    assert got == Counter(sender.positions), "each is delivered exactly once"
    assert whole.at("crm", Bin.DELIVERED) == sender.positions == whole.acked
    assert (whole.lost(), len(whole.unacked)) == (0, 0)
    assert not plane.offsets.fell
    seen = {field.path for sample in plane.books.samples if sample.pipe == "drain" for field in sample.fields}
    assert "note" in seen, "a drained lane reports its field observations"
