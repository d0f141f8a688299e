"""The broker is killed and restarted midway: senders are refused, and nothing that was ACKed is lost."""

import time
from collections import Counter

import pytest

from dataplane.ledger.bins import Bin
from tests.support.data_plane import DataPlane

AWAY_S = 10.0  # longer than ingest waits for a delivery report, and than lanes wait before they pause: 503 must occur


@pytest.mark.timeout(1_800)
def test_broker_kill_loses_nothing_that_was_acked(plane: DataPlane):
    key = plane.add_pipe("broker", {"crm": {"url": plane.receiver.url("/broker")}})
    with plane.sender(key) as sender:
        time.sleep(2)
        plane.broker.kill()
        time.sleep(AWAY_S)
        plane.broker.start()
        time.sleep(3)

    refused = [retry_after for status, retry_after in sender.refusals if status == 503]
    assert refused, "senders were refused"
    assert all(retry_after and int(retry_after) > 0 for retry_after in refused)
    assert {status for status, _ in sender.refusals} == {503}

    whole = plane.settled("broker", sender.positions, 120)
    got = Counter(received.position for received in plane.receiver.got["/broker"])
    assert whole.lost() == 0
    assert sender.positions <= got.keys()
    assert whole.at("crm", Bin.DELIVERED) == got.keys()
    assert max(got.values()) == 1, "the lanes were not killed: nothing is sent twice"
    assert whole.acked == sender.positions
    assert whole.unacked == got.keys() - sender.positions, "stored but never ACKed is counted as unacked"
    assert not plane.offsets.fell
