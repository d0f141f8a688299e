"""An event that kills every lane process that reads it is dead-lettered alone; all others are delivered."""

import json
from collections import Counter

import pytest

from dataplane.ledger.bins import Bin
from tests.support.data_plane import DataPlane
from tests.support.messages import dead_letters


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("execution", ["streaming", "bulk"])
def test_event_that_kills_its_lane_is_dead_lettered_and_the_rest_is_delivered(plane: DataPlane, execution: str):
    pipe = f"deadly-{execution}"
    before = plane.records_on("bulk")
    key = plane.add_pipe(pipe, {"crm": {"url": plane.receiver.url(f"/{pipe}")}}, execution=execution)
    deadly = "kills-its-task" if execution == "bulk" else "kills-its-lane"
    events = [{"n": n, "note": deadly if n == 7 else ""} for n in range(20)]
    status, _, text = plane.post(key, json.dumps(events).encode())
    assert status == 202
    positions = [item["position"] for item in json.loads(text)["items"]]

    whole = plane.settled(pipe, set(positions), 240)
    assert whole.upstream(Bin.DEAD) == {positions[7]}
    assert whole.at("crm", Bin.DELIVERED) == set(positions) - {positions[7]}
    got = Counter(received.position for received in plane.receiver.got[f"/{pipe}"])
    assert got == Counter(set(positions) - {positions[7]}), "each is delivered exactly once"
    (letter,) = dead_letters(plane, pipe)
    assert (letter.position, letter.cause) == (positions[7], "crashes-lane")
    assert json.loads(letter.body) == events[7]
    assert plane.records_on("bulk") - before == (len(events) if execution == "bulk" else 0)
    assert not plane.offsets.fell
