"""Destinations that say what they want: later, never again, gone; and a dead letter that finds no place."""

import json
import time
from collections import Counter
from typing import Any, Final, NamedTuple

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource
from pyroaring import BitMap64

from dataplane.ledger.bins import Bin
from dataplane.ledger.units import format_position
from dataplane.record_limits import TOPIC_MAX_BYTES
from dataplane.tables.moves import Place, encode_offsets
from dataplane.tables.records import MoveRecord
from tests.rig import behaviours as so
from tests.rig.books import Whole
from tests.rig.data_plane import DataPlane, until
from tests.rig.messages import DeadLetter, dead_letters, stored
from tests.rig.receiver import Received

pytestmark = pytest.mark.timeout(1_260)
EVENTS: Final = 4  # twice as many are fewer than a breaker judges by: each is asked exactly as it wishes
ASKED_S: Final = 3.0
SPAN_S: Final = 4
PIPE: Final = "wishes"
LATER: Final = {  # how they ask, and how long they are left alone at least; a date is in whole seconds
    "in-seconds": (so.throttled(f"{ASKED_S:.0f}"), ASKED_S),
    "by-date": (so.throttled_until(ASKED_S), ASKED_S - 1),
    "with-a-503": (so.status(503, f"retry-after: {ASKED_S:.0f}\r\n"), ASKED_S),
}


class Outcome(NamedTuple):
    """What was seen when all was over."""

    positions: set[str]
    whole: Whole
    got: dict[str, list[Received]]
    letters: list[DeadLetter]


def post(plane: DataPlane, key: str) -> set[str]:
    status, _, text = plane.post(key, json.dumps([{"n": n} for n in range(EVENTS)]).encode())
    assert status == 202
    return {item["position"] for item in json.loads(text)["items"]}


def gaps_s(got: list[Received]) -> list[float]:
    """Seconds from the first to the second request of each message that was sent twice."""
    times: dict[str, list[int]] = {}
    for received in got:
        times.setdefault(received.id, []).append(received.at_ns)
    return [(at[1] - at[0]) / 1e9 for at in times.values() if len(at) > 1]


@pytest.fixture(scope="module")
def outcome(plane: DataPlane) -> Outcome:
    """One pipe to all of them; events come before and after one is found gone and another is removed."""
    answers = {f"/{name}": so.once(asks, so.status(204)) for name, (asks, _) in LATER.items()}
    plane.receiver.answers |= answers
    plane.receiver.answers |= {"/decade": so.throttled("315360000"), "/gone": 410, "/removed": 503}
    names = (*LATER, "decade", "gone", "removed")
    destinations: dict[str, dict[str, Any]] = {
        name: {"url": plane.receiver.url(f"/{name}"), "retry": {"local_tries": 1}} for name in names
    }
    destinations["decade"]["retry"] = {"local_tries": 2, "span_s": SPAN_S}
    destinations["gone"]["concurrency"] = 1
    key = plane.add_pipe(PIPE, destinations)

    positions = post(plane, key)
    until(lambda: plane.whole(PIPE).at("gone", Bin.HELD) == positions, "every unit for one that is gone is held", 60)
    until(lambda: plane.whole(PIPE).at("removed", Bin.RETRYING) == positions, "every unit for another is parked", 60)
    plane.cluster.publish_destinations(PIPE, {"removed": destinations["removed"]}, "removed")
    positions |= post(plane, key)
    whole = plane.settled(PIPE, positions, 120)
    return Outcome(
        positions, whole, {name: plane.receiver.got[f"/{name}"] for name in names}, dead_letters(plane, PIPE)
    )


def test_none_of_their_wishes_loses_anything(outcome: Outcome):
    assert outcome.whole.lost() == 0


@pytest.mark.parametrize("name", LATER)
def test_nobody_is_asked_again_before_the_time_it_asked_for(outcome: Outcome, name: str):
    got = outcome.got[name]
    assert outcome.whole.at(name, Bin.DELIVERED) == outcome.positions
    assert Counter(received.position for received in got) == Counter([*outcome.positions] * 2), "twice, each of them"
    assert min(gaps_s(got)) >= LATER[name][1]


def test_who_asks_for_ten_years_is_asked_once_more_at_the_end_of_its_span_and_given_up(outcome: Outcome):
    got = outcome.got["decade"]
    assert outcome.whole.at("decade", Bin.DEAD) == outcome.positions
    assert {letter.cause for letter in outcome.letters if letter.node == "transmit:decade"} == {"expired"}
    # One that was not yet sent when the destination asked for less has waited without an attempt.
    assert Counter(received.position for received in got) <= Counter([*outcome.positions] * 2)
    assert min(gaps_s(got)) >= SPAN_S - 1, "it begins with the first attempt, which arrives later on a busy machine"


def test_a_destination_that_is_gone_is_sent_nothing_more_and_the_rest_is_held(outcome: Outcome):
    assert outcome.whole.at("gone", Bin.HELD) == outcome.positions
    assert len(outcome.got["gone"]) == 1, "one request was enough"


def test_a_destination_that_is_removed_cancels_what_waits_for_it(outcome: Outcome):
    assert outcome.whole.at("removed", Bin.CANCELLED) == outcome.positions


def test_a_request_is_made_for_each_message_and_what_makes_none_is_dead_unsent(plane: DataPlane):
    template = {"path": "/made/${body.to}?n=${body.n}", "headers": {"X-Id": "${meta.id}"}, "body": '{"n": body.n}'}
    key = plane.add_pipe("made", {"crm": {"url": plane.receiver.url("/plain"), "template": template}})
    events = [{"to": "a/b", "n": "1&x=2"}, {"to": "..", "n": "1"}, {"n": "1"}]
    status, _, text = plane.post(key, json.dumps(events).encode())
    assert status == 202
    sent, *unmade = (item["position"] for item in json.loads(text)["items"])
    whole = plane.settled("made", {sent, *unmade})
    assert whole.at("crm", Bin.DELIVERED) == {sent}
    (received,) = plane.receiver.got["/made/a%2Fb?n=1%26x%3D2"]
    assert received.headers["x-id"] == received.id
    assert received.body == b'{"n":"1&x=2"}'
    letters = dead_letters(plane, "made")
    assert {letter.position for letter in letters} == set(unmade)
    assert {(letter.node, letter.cause) for letter in letters} == {("transmit:crm", "template")}
    assert not plane.receiver.got["/plain"]


def test_chosen_held_messages_go_out_of_a_paused_destination_and_the_others_stay(plane: DataPlane):
    destinations = {"crm": {"url": plane.receiver.url("/chosen")}}
    key = plane.add_pipe("chosen", destinations)
    plane.cluster.publish_destinations("chosen", destinations, "paused")
    time.sleep(1)
    positions = post(plane, key)
    until(lambda: plane.whole("chosen").at("crm", Bin.HELD) == positions, "every unit is held", 60)
    some = list(stored(plane, "held", "chosen"))[:3]
    places: dict[Place, BitMap64] = {}
    for record in some:
        places.setdefault(record.place, BitMap64()).add(record.offset)
    cell, offsets = plane.cluster.cell, encode_offsets(places)
    move = MoveRecord("m-chosen", 1, cell, "chosen", "crm", "release", offsets, 100.0, "running", through=True)
    plane.cluster.publish(move)
    chosen = {format_position(record.meta.position) for record in some}
    until(lambda: plane.whole("chosen").at("crm", Bin.DELIVERED) == chosen, "the chosen ones are delivered", 60)
    assert plane.whole("chosen").at("crm", Bin.HELD) == positions - chosen
    assert sorted(received.position for received in plane.receiver.got["/chosen"]) == sorted(chosen)


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
        _largest_dead_letter(plane, str(TOPIC_MAX_BYTES))
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
