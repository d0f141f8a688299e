"""Destinations that say what they want: later, never again, gone; and a dead letter that finds no place."""

import json
import time
from collections import Counter
from typing import Final

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from dataplane.ledger.bins import Bin
from tests.rig import behaviours as so
from tests.rig.data_plane import DataPlane, until
from tests.rig.messages import dead_letters
from tests.rig.receiver import Received

pytestmark = pytest.mark.timeout(300)
EVENTS: Final = 10
ASKED_S: Final = 3.0


def post(plane: DataPlane, key: str, count: int = EVENTS) -> set[str]:
    status, _, text = plane.post(key, json.dumps([{"n": n} for n in range(count)]).encode())
    assert status == 202
    return {item["position"] for item in json.loads(text)["items"]}


def gaps_s(got: list[Received]) -> list[float]:
    """Seconds from the first to the second request of each message that was sent twice.

    One that was not yet sent when the destination asked for less waits without an attempt, and is sent once.
    """
    times: dict[str, list[int]] = {}
    for received in got:
        times.setdefault(received.id, []).append(received.at_ns)
    return [(at[1] - at[0]) / 1e9 for at in times.values() if len(at) > 1]


@pytest.mark.parametrize(
    ("name", "asks", "least_s"),
    [
        pytest.param("in-seconds", so.throttled(f"{ASKED_S:.0f}"), ASKED_S, id="seconds"),
        pytest.param("by-date", so.throttled_until(ASKED_S), ASKED_S - 1, id="a date, in whole seconds"),
        pytest.param("later", so.status(503, f"retry-after: {ASKED_S:.0f}\r\n"), ASKED_S, id="with a 503"),
    ],
)
def test_nobody_is_asked_again_before_the_time_it_asked_for(
    plane: DataPlane, name: str, asks: so.Behaviour, least_s: float
):
    path = f"/{name}"
    plane.receiver.answers[path] = so.once(asks, so.status(204))
    key = plane.add_pipe(name, {"crm": {"url": plane.receiver.url(path), "retry": {"local_tries": 1}}})
    positions = post(plane, key)
    whole = plane.settled(name, positions, 120)
    assert whole.at("crm", Bin.DELIVERED) == positions
    got = plane.receiver.got[path]
    assert Counter(received.position for received in got) <= Counter([*positions] * 2), "asked twice at most"
    assert min(gaps_s(got)) >= least_s


def test_who_asks_for_ten_years_is_asked_once_more_at_the_end_of_its_span_and_given_up(plane: DataPlane):
    plane.receiver.answers["/decade"] = so.throttled("315360000")
    span_s = 4
    retry = {"local_tries": 2, "span_s": span_s}
    key = plane.add_pipe("decade", {"crm": {"url": plane.receiver.url("/decade"), "retry": retry}})
    positions = post(plane, key)
    whole = plane.settled("decade", positions, 90)
    assert whole.at("crm", Bin.DEAD) == positions
    assert {letter.cause for letter in dead_letters(plane, "decade")} == {"expired"}
    got = plane.receiver.got["/decade"]
    assert Counter(received.position for received in got) <= Counter([*positions] * 2)
    assert min(gaps_s(got)) >= span_s - 0.1


def test_a_destination_that_is_gone_is_sent_nothing_more_and_the_rest_is_held(plane: DataPlane):
    plane.receiver.answers["/gone"] = 410
    key = plane.add_pipe("gone", {"crm": {"url": plane.receiver.url("/gone"), "concurrency": 1}})
    positions = post(plane, key)
    until(lambda: plane.whole("gone").at("crm", Bin.HELD) == positions, "every unit is held", 60)
    positions |= post(plane, key)
    until(lambda: plane.whole("gone").at("crm", Bin.HELD) == positions, "every later unit is held", 60)
    assert len(plane.receiver.got["/gone"]) == 1, "one request was enough"
    assert plane.whole("gone").lost() == 0


def test_a_destination_that_is_removed_cancels_what_waits_for_it(plane: DataPlane):
    plane.receiver.answers["/removed"] = 503
    destination = {"url": plane.receiver.url("/removed"), "retry": {"local_tries": 1}}
    key = plane.add_pipe("removed", {"crm": destination})
    positions = post(plane, key)
    until(lambda: plane.whole("removed").at("crm", Bin.RETRYING) == positions, "every unit is parked", 60)
    plane.cluster.publish_destinations("removed", {"crm": destination}, "removed")
    whole = plane.settled("removed", positions, 120)
    assert whole.at("crm", Bin.CANCELLED) == positions
    assert whole.lost() == 0


def test_while_dead_letters_find_no_place_nothing_is_settled_and_afterwards_nothing_is_lost(plane: DataPlane):
    plane.receiver.answers["/nowhere"] = 400
    urls = {"bad": {"url": plane.receiver.url("/nowhere")}, "good": {"url": plane.receiver.url("/somewhere")}}
    key = plane.add_pipe("nowhere", urls)
    _largest_dead_letter(plane, "100")  # bytes: the broker refuses every one
    try:
        positions = post(plane, key)
        got = plane.receiver.got
        until(lambda: len(got["/somewhere"]) >= EVENTS and len(got["/nowhere"]) >= EVENTS, "both were sent to", 30)
        time.sleep(4)
        meanwhile = plane.whole("nowhere")
        assert meanwhile.at("bad", Bin.DEAD) == set(), "not dead before its record is stored"
        assert meanwhile.at("bad", Bin.QUEUED) == positions, "and so not committed"
    finally:
        _largest_dead_letter(plane, "2097152")
    whole = plane.settled("nowhere", positions, 90)
    assert whole.at("bad", Bin.DEAD) == positions
    assert whole.at("good", Bin.DELIVERED) == positions
    assert whole.lost() == 0
    for path in ("/somewhere", "/nowhere"):
        assert Counter(received.position for received in got[path]) == Counter(positions), "sent once: the lane went on"
    assert {letter.position for letter in dead_letters(plane, "nowhere")} == positions


def _largest_dead_letter(plane: DataPlane, size: str) -> None:
    entry = ConfigEntry("max.message.bytes", size, incremental_operation=AlterConfigOpType.SET)
    name = plane.cluster.topics["dead"].name
    resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[entry])
    for future in plane.cluster.admin.incremental_alter_configs([resource]).values():
        future.result(20)
