"""A failing destination is isolated: it gets few requests, its messages are set aside, others continue."""

import time
from collections import Counter
from typing import Any

import pytest

from dataplane.ledger.bins import Bin
from dataplane.ledger.facts import Fact
from tests.support.behaviours import hang, late
from tests.support.data_plane import DataPlane
from tests.support.patience import until

pytestmark = pytest.mark.timeout(1_200)
AT_ONCE = 4
STORM = 20  # refusals in a row suspend a destination


def broken_and_healthy(plane: DataPlane, name: str, **fields: Any) -> dict[str, dict[str, Any]]:
    """Return a destination that a test breaks and a healthy one."""
    crm = {"url": plane.receiver.url(f"/{name}"), "concurrency": AT_ONCE, **fields}
    return {"crm": crm, "healthy": {"url": plane.receiver.url(f"/{name}-healthy")}}


def test_storm_of_refusals_is_held_instead_of_dead_and_ends_with_a_newer_record(plane: DataPlane):
    plane.receiver.answers["/storm"] = 403
    destinations = broken_and_healthy(plane, "storm")
    key = plane.add_pipe("storm", destinations)
    with plane.sender(key, 100) as sender:
        until(lambda: len(sender.acked) >= 10 * STORM, "many events are ACKed", 60)

    def all_are_dead_or_held() -> bool:
        whole = plane.whole("storm")
        return whole.at("crm", Bin.DEAD) | whole.at("crm", Bin.HELD) == sender.positions

    until(all_are_dead_or_held, "every unit is dead or held", 60)
    dead = plane.whole("storm").at("crm", Bin.DEAD)
    assert STORM <= len(dead) <= STORM + AT_ONCE
    assert {r.position for r in plane.receiver.got["/storm-healthy"]} == sender.positions
    plane.receiver.answers["/storm"] = 204
    plane.cluster.publish_destinations("storm", destinations)
    plane.wait_applied()
    with plane.sender(key, 50) as again:
        until(lambda: len(again.acked) >= STORM, "new events are ACKed", 30)
    until(
        lambda: plane.whole("storm").at("crm", Bin.DELIVERED) >= again.positions,
        "new events are delivered, held ones stay held",
        60,
    )
    assert len(plane.whole("storm").at("crm", Bin.HELD)) == len(sender.positions) - len(dead)


def test_paused_destination_gets_nothing_and_loses_nothing(plane: DataPlane):
    destinations = broken_and_healthy(plane, "pause")
    key = plane.add_pipe("pause", destinations)
    plane.cluster.publish_destinations("pause", {"crm": destinations["crm"]}, "paused")
    plane.wait_applied()
    with plane.sender(key, 100) as sender:
        time.sleep(1)
    until(lambda: plane.whole("pause").at("crm", Bin.HELD) == sender.positions, "every unit is held", 60)
    assert not plane.receiver.got["/pause"]
    assert {r.position for r in plane.receiver.got["/pause-healthy"]} == sender.positions


def test_hanging_destination_delays_no_other_destination(plane: DataPlane):
    plane.receiver.answers["/hanging"] = hang
    destinations = broken_and_healthy(plane, "hanging", timeout_s=8, concurrency=64, retry={"local_tries": 1})
    key = plane.add_pipe("hanging", destinations)
    with plane.sender(key, 200) as sender:
        time.sleep(5)  # shorter than the timeout
    got = plane.receiver.got["/hanging-healthy"]
    until(lambda: {r.position for r in got} >= sender.positions, "the healthy destination has everything", 15)
    assert len(plane.receiver.got["/hanging"]) <= 64, "at most its concurrency"
    plane.receiver.answers["/hanging"] = 204
    whole = plane.settled("hanging", sender.positions, 240)
    assert whole.at("crm", Bin.DELIVERED) == sender.positions


def test_healthy_but_slow_destination_gets_its_own_lane(plane: DataPlane):
    plane.receiver.answers["/slow"] = late(1.2)
    key = plane.add_pipe("slow", broken_and_healthy(plane, "slow", concurrency=200))

    def is_diverted() -> bool:
        plane.books.refresh()
        return bool(plane.books.facts("slow").get(("transmit:crm", Fact.SENT)))

    with plane.sender(key, 20) as sender:
        until(is_diverted, "its messages are sent to the slow lane", 40)
    whole = plane.settled("slow", sender.positions, 60)
    assert whole.at("crm", Bin.DELIVERED) == sender.positions
    assert Counter(received.position for received in plane.receiver.got["/slow"]) == Counter(sender.positions)
    assert whole.lost() == 0
