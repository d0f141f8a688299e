"""A lane stopped past its session wakes up as a zombie: it must not start a send that another lane owns."""

import os
import signal
import time
from collections import Counter

import pytest

from dataplane.ledger.bins import Bin
from tests.support.behaviours import late
from tests.support.data_plane import DataPlane
from tests.support.patience import until

ASLEEP_S = 9.0  # the session timeout is 6 s
SEND_LIMIT = 8  # of the destination; each of two lanes has less than half of it
RATE = 100.0
LATE_S = 0.3  # with the limit, slower than the rate: messages wait in the lanes
WAITING = 60  # in the lane that is stopped; it would send them if it believed that it still owned their partitions


@pytest.mark.timeout(900)
def test_lane_stopped_past_its_session_repeats_only_what_was_in_flight(plane: DataPlane):
    limits = {"url": plane.receiver.url("/asleep"), "concurrency": SEND_LIMIT}
    key = plane.add_pipe("asleep", {"crm": limits})
    plane.cluster.publish_cell(transmit=2)

    def both_transmit() -> bool:
        plane.heartbeats.refresh()
        beats = [plane.heartbeats.latest.get(f"transmit-{number}") for number in (0, 1)]
        return all(beat is not None and beat.state == "running" and beat.partitions for beat in beats)

    def messages_wait() -> bool:
        plane.heartbeats.refresh()
        return plane.heartbeats.latest["transmit-0"].unsettled >= WAITING

    with plane.sender(key, RATE) as sender:
        until(both_transmit, "both lanes hold partitions", 120)
        plane.receiver.answers["/asleep"] = late(LATE_S)
        until(messages_wait, "messages wait in the lane", 60)
        pid = plane.lane_pid("transmit-0")
        os.kill(pid, signal.SIGSTOP)
        time.sleep(ASLEEP_S)
        plane.receiver.answers["/asleep"] = 204  # now a send takes no time
        os.kill(pid, signal.SIGCONT)
        time.sleep(3)
    whole = plane.settled("asleep", sender.positions, 120)
    got = Counter(received.position for received in plane.receiver.got["/asleep"])
    assert whole.at("crm", Bin.DELIVERED) == sender.positions == got.keys()
    assert whole.lost() == 0
    assert sum(got.values()) - len(got) < SEND_LIMIT / 2, "more repeats than sends of one lane in flight"
    assert not plane.offsets.fell
    plane.cluster.publish_cell()
