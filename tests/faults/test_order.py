"""Order per key on real services: through an outage and kills of both lanes, no message overtakes another."""

import json
import os
import signal
import time

import pytest

from dataplane.ledger.bins import Bin
from dataplane.transmit.policy.breaker import MIN_VOLUME
from tests.support.data_plane import DataPlane
from tests.support.patience import until

pytestmark = pytest.mark.timeout(1_200)
KEYS = 20


def test_key_keeps_its_order_through_an_outage_and_kills_of_both_lanes(plane: DataPlane):
    plane.receiver.answers["/ordered"] = 503
    destination = {"url": plane.receiver.url("/ordered"), "ordered": True, "retry": {"local_tries": 1}}
    key = plane.add_pipe("ordered", {"crm": destination}, sources={"shop": {"key": "customer"}})
    positions: list[str] = []

    def post(first: int, count: int) -> None:
        for n in range(first, first + count, 50):
            events = [{"customer": f"c{m % KEYS}", "n": m} for m in range(n, n + 50)]
            status, _, text = plane.post(key, json.dumps(events).encode())
            assert status == 202
            positions.extend(item["position"] for item in json.loads(text)["items"])

    post(0, 500)
    until(lambda: len(plane.receiver.got["/ordered"]) >= MIN_VOLUME, "some have been tried", 30)
    os.kill(plane.lane_pid("transmit-0"), signal.SIGKILL)
    post(500, 500)
    until(lambda: len(plane.whole("ordered").at("crm", Bin.RETRYING)) >= 500, "what failed went aside", 90)
    os.kill(plane.lane_pid("transmit-retry-0"), signal.SIGKILL)
    plane.receiver.answers["/ordered"] = 204
    mended_ns = time.time_ns()
    post(1_000, 500)
    whole = plane.settled("ordered", set(positions), 240)
    assert whole.at("crm", Bin.DELIVERED) == set(positions)
    assert whole.lost() == 0
    first_seen: dict[str, list[int]] = {}
    for received in plane.receiver.got["/ordered"]:
        if received.at_ns < mended_ns:
            continue
        event = json.loads(received.body)
        seen = first_seen.setdefault(event["customer"], [])
        if event["n"] not in seen:
            seen.append(event["n"])
    assert len(first_seen) == KEYS
    assert all(seen == sorted(seen) for seen in first_seen.values()), "a message overtook another"
