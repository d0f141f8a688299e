"""A lane stopped past its session wakes up as a zombie: it must not start a send that another lane owns."""

import os
import signal
import time
from collections import Counter

import pytest

from dataplane.ledger.bins import Bin
from tests.support.data_plane import DataPlane, until

ASLEEP_S = 9.0  # the session timeout is 6 s
SEND_LIMIT = 8


@pytest.mark.timeout(900)
def test_lane_stopped_past_its_session_repeats_only_what_was_in_flight(plane: DataPlane):
    limits = {"url": plane.receiver.url("/asleep"), "concurrency": SEND_LIMIT}
    key = plane.add_pipe("asleep", {"crm": limits})
    plane.cluster.publish_cell(transmit=2)

    def both_transmit() -> bool:
        plane.heartbeats.refresh()
        beats = [plane.heartbeats.latest.get(f"transmit-{number}") for number in (0, 1)]
        return all(beat is not None and beat.state == "running" and beat.partitions for beat in beats)

    with plane.sender(key) as sender:
        until(both_transmit, "both lanes hold partitions", 120)
        pid = plane.lane_pid("transmit-0")
        os.kill(pid, signal.SIGSTOP)
        time.sleep(ASLEEP_S)
        os.kill(pid, signal.SIGCONT)
        time.sleep(3)
    whole = plane.settled("asleep", sender.positions)
    got = Counter(received.position for received in plane.receiver.got["/asleep"])
    assert whole.at("crm", Bin.DELIVERED) == sender.positions == got.keys()
    assert whole.lost() == 0
    assert sum(got.values()) - len(got) <= SEND_LIMIT
    assert not plane.offsets.fell
    plane.cluster.publish_cell()
