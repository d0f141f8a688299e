"""Destinations that fail, refuse or hang: each message ends as the rules define, and no other one waits."""

import json
import time
from collections import Counter
from typing import Any

import pytest

from dataplane.ledger.bins import Bin
from tests.support.behaviours import hang
from tests.support.data_plane import DataPlane
from tests.support.messages import dead_letters
from tests.support.patience import until

pytestmark = pytest.mark.timeout(900)


def test_500_responses_are_retried_through_the_retrier_until_delivery(plane: DataPlane):
    path = "/flaky"
    plane.receiver.answers[path] = 500
    retry = {"local_tries": 2, "delays_s": [1]}
    key = plane.add_pipe("flaky", {"crm": {"url": plane.receiver.url(path), "retry": retry}})
    with plane.sender(key, 20) as sender:
        until(lambda: len(sender.acked) >= 20, "events are ACKed", 30)

    def all_are_retrying() -> bool:
        return plane.whole("flaky").at("crm", Bin.RETRYING) == sender.positions

    until(all_are_retrying, "every unit is parked", 60)
    plane.receiver.answers[path] = 200
    whole = plane.settled("flaky", sender.positions, 120)
    assert whole.at("crm", Bin.DELIVERED) == sender.positions
    got = plane.receiver.got[path]
    assert Counter(r.position for r in got if r.answered == 200) == Counter(sender.positions), "each is delivered once"
    assert len({(r.position, r.id, r.digest) for r in got}) == len(sender.positions), "same id and body each time"


def test_400_response_is_dead_after_one_attempt_with_its_cause(plane: DataPlane):
    path = "/says-no"
    plane.receiver.answers[path] = 400
    key = plane.add_pipe("refuses", {"crm": {"url": plane.receiver.url(path)}})
    events = [{"n": n} for n in range(10)]  # too few to suspend the destination
    status, _, text = plane.post(key, json.dumps(events).encode())
    assert status == 202
    positions = {item["position"] for item in json.loads(text)["items"]}
    whole = plane.settled("refuses", positions)
    assert whole.at("crm", Bin.DEAD) == positions
    assert Counter(r.position for r in plane.receiver.got[path]) == Counter(positions), "one attempt each"
    letters = dead_letters(plane, "refuses")
    assert {letter.position for letter in letters} == positions
    assert {(letter.node, letter.cause) for letter in letters} == {("transmit:crm", "rejected")}


def test_hanging_destination_delays_neither_the_healthy_one_nor_the_ledger(plane: DataPlane):
    plane.receiver.answers["/mixed-hangs"] = hang
    retry = {"local_tries": 1, "span_s": 4}
    destinations: dict[str, dict[str, Any]] = {
        "slow": {"url": plane.receiver.url("/mixed-hangs"), "timeout_s": 1, "retry": retry},
        "crm": {"url": plane.receiver.url("/mixed-healthy")},
    }
    key = plane.add_pipe("mixed", destinations)
    with plane.sender(key, 50) as sender:
        time.sleep(2)
    until(lambda: len(plane.receiver.got["/mixed-healthy"]) >= len(sender.acked), "the healthy one has everything", 15)
    whole = plane.settled("mixed", sender.positions, 120)
    assert whole.at("crm", Bin.DELIVERED) == sender.positions
    assert whole.at("slow", Bin.DEAD) == sender.positions, "its retry horizon was over"
    assert whole.lost() == 0


def test_message_whose_step_fails_is_dead_and_the_rest_of_its_batch_continues(plane: DataPlane):
    steps = [{"op": "cast", "path": "total", "to": "decimal"}]
    key = plane.add_pipe("steps", {"crm": {"url": plane.receiver.url("/steps")}}, normalize=steps)
    events = [{"n": n, "total": "secret-text" if n % 10 == 3 else f"{n}.50"} for n in range(100)]
    status, _, text = plane.post(key, json.dumps(events).encode())
    assert status == 202
    positions = [item["position"] for item in json.loads(text)["items"]]
    originals = {positions[n]: events[n] for n in range(100) if n % 10 == 3}
    bad = originals.keys()

    whole = plane.settled("steps", set(positions))
    assert whole.upstream(Bin.DEAD) == bad
    assert whole.at("crm", Bin.DELIVERED) == set(positions) - bad
    received = {r.position: json.loads(r.body) for r in plane.receiver.got["/steps"]}
    assert all(received[positions[n]]["total"] == n + 0.5 for n in range(100) if n % 10 != 3)
    letters = dead_letters(plane, "steps")
    assert {(letter.node, letter.cause) for letter in letters} == {("normalize", "step")}
    assert all("normalize[0] cast total" in letter.detail and "secret" not in letter.detail for letter in letters)
    assert {letter.position: json.loads(letter.body) for letter in letters} == originals
    assert len(letters) == len(originals)
