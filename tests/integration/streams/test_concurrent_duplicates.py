"""One event sent a hundred times at once: each is ACKed, one is delivered, and the ledger has the others."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from dataplane.ledger.bins import Bin
from tests.support.data_plane import DataPlane

AT_ONCE: Final = 100
EVENT: Final = b'{"order":{"id":4711},"note":"the same"}'


@pytest.mark.timeout(900)
def test_event_sent_a_hundred_times_at_once_is_delivered_once(plane: DataPlane):
    dedup = {"paths": ["order.id"], "window_s": 3_600}
    key = plane.add_pipe("same", {"crm": {"url": plane.receiver.url("/same")}}, dedup=dedup)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda _: plane.post(key, EVENT), range(AT_ONCE)))
    assert [status for status, _, _ in answers] == [202] * AT_ONCE
    positions = {json.loads(text)["position"] for _, _, text in answers}
    assert len(positions) == AT_ONCE

    whole = plane.settled("same", positions, 120)
    first = whole.at("crm", Bin.DELIVERED)
    assert [received.position for received in plane.receiver.got["/same"]] == list(first), "one message, delivered once"
    assert whole.upstream(Bin.DUPLICATE) == positions - first
    assert whole.lost() == 0
