"""Destinations that throttle, are gone, removed or paused; and dead letters that cannot be stored."""

import json
from collections import Counter
from functools import partial
from typing import Any, Final, NamedTuple

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource
from pyroaring import BitMap64

from dataplane.ledger.bins import Bin
from dataplane.ledger.units import format_position
from dataplane.names import PartitionKey
from dataplane.record_limits import TOPIC_MAX_BYTES
from dataplane.tables.records import RedriveRecord
from dataplane.tables.redrives import encode_offsets
from loadgen.scripted import Received, status
from tests.support import behaviours as so
from tests.support.data_plane import DataPlane
from tests.support.ledger_checks import Whole
from tests.support.messages import DeadLetter, dead_letters, stored
from tests.support.patience import until

pytestmark = pytest.mark.timeout(1_260)
EVENTS: Final = 4  # 2 * EVENTS is below the breaker's minimum sample: only Retry-After delays requests
ASKED_S: Final = 3.0
SPAN_S: Final = 4
PIPE: Final = "wishes"
LATER: Final = {  # response, and the minimum delay that it causes; an HTTP date has whole seconds
    "in-seconds": (so.throttled(f"{ASKED_S:.0f}"), ASKED_S),
    "by-date": (so.throttled_until(ASKED_S), ASKED_S - 1),
    "with-a-503": (status(503, f"retry-after: {ASKED_S:.0f}\r\n"), ASKED_S),
}


class Outcome(NamedTuple):
    """State of the ledger, the receiver and the dead letters after settlement."""

    positions: set[str]
    whole: Whole
    got: dict[str, list[Received]]
    letters: list[DeadLetter]


def post(plane: DataPlane, key: str) -> set[str]:
    status, _, text = plane.post(key, json.dumps([{"n": n} for n in range(EVENTS)]).encode())
    assert status == 202
    return {item["position"] for item in json.loads(text)["items"]}


def gaps_s(got: list[Received]) -> list[float]:
    """Return the seconds between the first and second request of each message sent more than once."""
    times: dict[str, list[int]] = {}
    for received in got:
        times.setdefault(received.id, []).append(received.at_ns)
    return [(at[1] - at[0]) / 1e9 for at in times.values() if len(at) > 1]


@pytest.fixture(scope="module")
def outcome(plane: DataPlane) -> Outcome:
    """One pipe to all destinations, with events before and after one is found gone and another is removed."""
    answers = {f"/{name}": so.once(asks, status(204)) for name, (asks, _) in LATER.items()}
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


def test_throttling_gone_and_removed_destinations_lose_no_message(outcome: Outcome):
    assert outcome.whole.lost() == 0


@pytest.mark.parametrize("name", LATER)
def test_no_destination_is_retried_before_its_retry_after_time(outcome: Outcome, name: str):
    got = outcome.got[name]
    assert outcome.whole.at(name, Bin.DELIVERED) == outcome.positions
    assert Counter(received.position for received in got) == Counter([*outcome.positions] * 2), "each is sent twice"
    assert min(gaps_s(got)) >= LATER[name][1]


def test_ten_year_retry_after_gets_one_more_attempt_at_its_retry_horizon_and_then_expires(outcome: Outcome):
    got = outcome.got["decade"]
    assert outcome.whole.at("decade", Bin.DEAD) == outcome.positions
    assert {letter.cause for letter in outcome.letters if letter.node == "transmit:decade"} == {"expired"}
    # A message that was still unsent when the destination throttled has waited without an attempt.
    assert Counter(received.position for received in got) <= Counter([*outcome.positions] * 2)
    assert min(gaps_s(got)) >= SPAN_S - 1, "the span begins with the first attempt, which comes later on a busy machine"


def test_410_destination_gets_no_further_request_and_its_messages_are_held(outcome: Outcome):
    assert outcome.whole.at("gone", Bin.HELD) == outcome.positions
    assert len(outcome.got["gone"]) == 1, "one request is enough"


def test_removed_destination_cancels_its_waiting_messages(outcome: Outcome):
    assert outcome.whole.at("removed", Bin.CANCELLED) == outcome.positions


def test_template_makes_a_request_per_message_and_messages_without_one_are_dead_unsent(plane: DataPlane):
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


def test_chosen_held_messages_of_a_paused_destination_are_sent_and_the_others_stay_held(plane: DataPlane):
    destinations = {"crm": {"url": plane.receiver.url("/chosen")}}
    key = plane.add_pipe("chosen", destinations)
    plane.cluster.publish_destinations("chosen", destinations, "paused")
    plane.wait_applied()
    positions = post(plane, key)
    until(lambda: plane.whole("chosen").at("crm", Bin.HELD) == positions, "every unit is held", 60)
    some = list(stored(plane, "held", "chosen"))[:3]
    places: dict[PartitionKey, BitMap64] = {}
    for record in some:
        places.setdefault(record.place, BitMap64()).add(record.offset)
    cell, offsets = plane.cluster.cell, encode_offsets(places)
    move = RedriveRecord("m-chosen", 1, cell, "chosen", "crm", "release", offsets, 100.0, "running", through=True)
    plane.cluster.publish(move)
    chosen = {format_position(record.meta.position) for record in some}
    until(lambda: plane.whole("chosen").at("crm", Bin.DELIVERED) == chosen, "the chosen ones are delivered", 60)
    assert plane.whole("chosen").at("crm", Bin.HELD) == positions - chosen
    assert sorted(received.position for received in plane.receiver.got["/chosen"]) == sorted(chosen)


def test_messages_stay_unsettled_while_dead_letters_cannot_be_stored_and_none_is_lost(plane: DataPlane):
    plane.receiver.answers["/nowhere"] = 400
    urls = {"bad": {"url": plane.receiver.url("/nowhere")}, "good": {"url": plane.receiver.url("/somewhere")}}
    key = plane.add_pipe("nowhere", urls)

    def are_reported(positions: set[str]) -> bool:
        return plane.whole("nowhere").at("good", Bin.DELIVERED) == positions

    _largest_dead_letter(plane, "100")  # bytes: the broker refuses every dead letter
    try:
        positions = post(plane, key)
        got = plane.receiver.got
        until(lambda: len(got["/nowhere"]) >= EVENTS, "all were sent to the one that refuses", 30)
        for _ in range(2):  # each time, a checkpoint reports what is settled
            positions |= post(plane, key)
            until(partial(are_reported, positions), "what the other one accepted is reported", 60)
        until(lambda: len(got["/nowhere"]) >= 3 * EVENTS, "the last ones were sent, too", 30)
        meanwhile = plane.whole("nowhere")
        assert meanwhile.at("bad", Bin.DEAD) == set(), "no message is dead before its record is stored"
        assert meanwhile.at("bad", Bin.QUEUED) == positions, "and so none is committed"
    finally:
        _largest_dead_letter(plane, str(TOPIC_MAX_BYTES))
    whole = plane.settled("nowhere", positions, 90)
    assert whole.at("bad", Bin.DEAD) == positions
    assert whole.at("good", Bin.DELIVERED) == positions
    assert whole.lost() == 0
    for path in ("/somewhere", "/nowhere"):
        assert Counter(received.position for received in got[path]) == Counter(positions), "sent once: no lane stopped"
    assert {letter.position for letter in dead_letters(plane, "nowhere")} == positions


def _largest_dead_letter(plane: DataPlane, size: str) -> None:
    entry = ConfigEntry("max.message.bytes", size, incremental_operation=AlterConfigOpType.SET)
    name = plane.cluster.topics["dead"].name
    resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[entry])
    for future in plane.cluster.admin.incremental_alter_configs([resource]).values():
        future.result(20)
