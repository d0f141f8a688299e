"""Ledger algebra: every unit is in exactly one bin, and the talk's loss table is reproduced."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from dataplane.ledger.bins import OVERWRITTEN, Bin, BucketFacts, all_are_delivered, derive, healthy_counts
from dataplane.ledger.facts import (
    ACKED,
    INGEST,
    LOG,
    PROCESS,
    REUSED,
    SEEN,
    SLOW,
    Fact,
    FactKey,
    dead_detail,
    log_key,
)
from dataplane.ledger.units import position_of
from dataplane.ledger.unitset import UnitSet
from dataplane.names import Purpose

TOPICS: dict[Purpose, list[tuple[str, int]]] = {
    "ingest": [("in", 1)],
    "egress": [("out", 1)],
    "retry-in": [("ri", 1)],
    "delay-10s": [("t10", 1)],
    "retry-out": [("ro", 1)],
    "held": [("he", 1)],
    "slow": [("sl", 1)],
    "lake": [("la", 1)],
}
Facts = dict[FactKey, BitMap64]
Places = dict[tuple[str, int], int]
TRANSFORM, TRANSMIT = "transform:crm", "transmit:crm"


def at(*offsets: int) -> BitMap64:
    return BitMap64(position_of(1, 0, offset) for offset in offsets)


def units(*offsets: int) -> UnitSet:
    return UnitSet({0: at(*offsets)})


def books(facts: Facts, *, passed: Places | None = None, reach: Places | None = None) -> BucketFacts:
    return BucketFacts(
        facts=facts,
        reach={("out", 0): 9, **(reach or {})},
        passed={("in", 0): 10, ("out", 0): 0, **(passed or {})},
        topics=TOPICS,
    )


def moving(*offsets: int) -> dict[FactKey, BitMap64]:
    """Return the facts of units that were ACKed and that process sent to crm."""
    return {
        FactKey(INGEST, Fact.SENT, ACKED): at(*offsets),
        FactKey(INGEST, Fact.SENT, SEEN): at(*offsets),
        FactKey(PROCESS, Fact.SENT): at(*offsets),
        FactKey(TRANSFORM, Fact.SENT): at(*offsets),
    }


def test_unit_that_the_next_node_has_not_passed_is_queued_not_lost():
    account = derive(books(moving(1, 2, 3), passed={("out", 0): 9}))
    assert account.destinations["crm"][Bin.QUEUED] == units(1, 2, 3)
    assert account.count(Bin.LOST) == 0


def test_unit_that_transmit_has_passed_without_a_final_fact_is_lost():
    facts = {**moving(1, 2, 3), FactKey(TRANSMIT, Fact.DELIVERED): at(1, 3)}
    account = derive(books(facts, passed={("out", 0): 10}))
    assert account.destinations["crm"][Bin.LOST] == units(2)
    assert account.nodes[-1].lost == units(2)


def test_unit_that_process_passed_without_a_fact_is_lost_and_one_it_has_not_reached_is_queued():
    facts = {FactKey(INGEST, Fact.SENT, ACKED): at(4, 12)}
    account = derive(books(facts))
    assert account.upstream[Bin.LOST] == units(4)
    assert account.upstream[Bin.QUEUED] == units(12)


def test_unit_seen_but_not_acked_is_unacked_and_binned_like_any_other():
    facts = {**moving(1, 2), FactKey(INGEST, Fact.SENT, ACKED): at(1), FactKey(TRANSMIT, Fact.DELIVERED): at(1, 2)}
    account = derive(books(facts, passed={("out", 0): 10}))
    assert account.unacked == units(2)
    assert account.destinations["crm"][Bin.DELIVERED] == units(1, 2)


def test_unit_dead_at_normalize_ends_upstream_and_reaches_no_destination():
    facts = {**moving(1), FactKey(INGEST, Fact.SENT, ACKED): at(1, 2), FactKey("normalize", Fact.DEAD, "cast"): at(2)}
    account = derive(books(facts))
    assert account.upstream[Bin.DEAD] == units(2)
    assert len(account.destinations["crm"][Bin.QUEUED]) == 1


def test_delivered_overrides_dead_and_parked():
    facts = {
        **moving(1),
        FactKey(TRANSMIT, Fact.PARKED, "1"): at(1),
        FactKey(TRANSMIT, Fact.DEAD, "expired"): at(1),
        FactKey(TRANSMIT, Fact.DELIVERED): at(1),
    }
    bins = derive(books(facts)).destinations["crm"]
    assert bins[Bin.DELIVERED] == units(1)
    assert not bins[Bin.DEAD]


@pytest.mark.parametrize(
    ("released", "passed", "expected"),
    [
        pytest.param((), {("ri", 0): 3}, Bin.RETRYING, id="the retrier has it before it"),
        pytest.param((), {("ri", 0): 5}, Bin.LOST, id="the retrier is past it and does not know it"),
        pytest.param((1,), {("ri", 0): 5, ("ro", 0): 2}, Bin.RETRYING, id="released, the retry lane has it before it"),
        pytest.param((1,), {("ri", 0): 5, ("ro", 0): 8}, Bin.LOST, id="released, the retry lane is past it"),
    ],
)
def test_retrying_bin_never_hides_a_loss(released: tuple[int, ...], passed: Places, expected: Bin):
    facts = {
        **moving(1),
        FactKey(TRANSMIT, Fact.PARKED, "1"): at(1),
        FactKey(TRANSMIT, Fact.RELEASED, "1"): at(*released),
    }
    account = derive(books(facts, passed={("out", 0): 10, **passed}, reach={("ri", 0): 4, ("ro", 0): 7}))
    assert account.destinations["crm"][expected] == units(1)


def test_second_round_removes_the_unit_from_the_first():
    facts = {
        **moving(1),
        FactKey(TRANSMIT, Fact.PARKED, "1"): at(1),
        FactKey(TRANSMIT, Fact.RELEASED, "1"): at(1),
        FactKey(TRANSMIT, Fact.PARKED, "2"): at(1),
    }
    account = derive(
        books(facts, passed={("out", 0): 10, ("ri", 0): 4, ("ro", 0): 8}, reach={("ri", 0): 4, ("ro", 0): 7})
    )
    assert account.destinations["crm"][Bin.RETRYING] == units(1)


def waits(fact: Fact, round_: int, *offsets: int) -> Facts:
    return {FactKey(TRANSMIT, fact, str(round_)): at(*offsets)}


REACH: Places = {("ri", 0): 4, ("t10", 0): 4, ("ro", 0): 7, ("he", 0): 3}
PASSED: Places = {("out", 0): 10, ("ri", 0): 5, ("t10", 0): 5, ("ro", 0): 8}


@pytest.mark.parametrize(
    ("facts", "passed", "expected"),
    [
        pytest.param({}, {"t10": 3}, Bin.RETRYING, id="past retry-in, and still in a tier"),
        pytest.param({}, {"t10": 5}, Bin.LOST, id="the retrier is past the tier, too"),
        pytest.param(waits(Fact.HELD, 2, 1), {}, Bin.HELD, id="parked, then held"),
        pytest.param(waits(Fact.HELD, 2, 1), {"he": 4}, Bin.LOST, id="held, but held begins after it"),
        pytest.param(
            waits(Fact.HELD, 2, 1) | waits(Fact.RELEASED, 2, 1), {"ro": 2}, Bin.RETRYING, id="held and released"
        ),
        pytest.param(
            waits(Fact.HELD, 2, 1) | waits(Fact.RELEASED, 2, 1), {}, Bin.LOST, id="released, the retry lane is past it"
        ),
        pytest.param(
            waits(Fact.HELD, 2, 1) | waits(Fact.RELEASED, 2, 1) | waits(Fact.PARKED, 3, 1),
            {"ri": 3},
            Bin.RETRYING,
            id="held, released, parked again",
        ),
        pytest.param(
            waits(Fact.HELD, 2, 1) | waits(Fact.RELEASED, 2, 1) | waits(Fact.HELD, 3, 1),
            {},
            Bin.HELD,
            id="held, released, held again",
        ),
    ],
)
def test_bin_of_a_parked_unit_follows_its_later_facts(facts: Facts, passed: dict[str, int], expected: Bin):
    known = {**moving(1), **waits(Fact.PARKED, 1, 1), **facts}
    places = PASSED | {(topic, 0): offset for topic, offset in passed.items()}
    account = derive(books(known, passed=places, reach=REACH))
    assert account.destinations["crm"][expected] == units(1)


DEATH, AGAIN = FactKey(TRANSMIT, Fact.DEAD, "rejected"), FactKey(TRANSMIT, Fact.DEAD, "rejected/1")


@pytest.mark.parametrize(
    ("facts", "passed", "expected"),
    [
        pytest.param({}, {}, Bin.DEAD, id="dead"),
        pytest.param(waits(Fact.REDRIVEN, 1, 1), {"ro": 2}, Bin.RETRYING, id="brought back"),
        pytest.param(waits(Fact.REDRIVEN, 1, 1), {}, Bin.LOST, id="brought back, the retry lane is past it"),
        pytest.param(waits(Fact.REDRIVEN, 1, 1) | {AGAIN: at(1)}, {}, Bin.DEAD, id="brought back and dead again"),
        pytest.param(
            waits(Fact.REDRIVEN, 1, 1) | {AGAIN: at(1)} | waits(Fact.REDRIVEN, 2, 1),
            {"ro": 2},
            Bin.RETRYING,
            id="brought back a second time",
        ),
        pytest.param(
            waits(Fact.REDRIVEN, 1, 1) | {FactKey(TRANSMIT, Fact.DELIVERED): at(1)}, {}, Bin.DELIVERED, id="delivered"
        ),
        pytest.param(
            waits(Fact.REDRIVEN, 1, 1) | {FactKey(TRANSMIT, Fact.CANCELLED): at(1)}, {}, Bin.CANCELLED, id="cancelled"
        ),
    ],
)
def test_bin_of_a_dead_unit_follows_its_later_facts(facts: Facts, passed: dict[str, int], expected: Bin):
    places = PASSED | {(topic, 0): offset for topic, offset in passed.items()}
    account = derive(books({**moving(1), DEATH: at(1), **facts}, passed=places, reach=REACH))
    assert account.destinations["crm"][expected] == units(1)


class Journey:
    """One unit's path through transmit and back, as the lanes report it."""

    def __init__(self) -> None:
        self.facts: Facts = dict(moving(1))
        self.state, self.round, self.life = "sent", 0, 0

    def step(self, event: str) -> None:
        """Apply an event if the lanes could do it in this state."""
        if self.state == "sent" and event in ("park", "hold"):
            self.round += 1
            self._record(Fact.PARKED if event == "park" else Fact.HELD, str(self.round))
            self.state = "parked" if event == "park" else "held"
        elif self.state in ("parked", "held") and event == "release":
            self._record(Fact.RELEASED, str(self.round))
            self.state = "sent"
        elif self.state == "sent" and event in ("deliver", "cancel"):
            self.state = {"deliver": "delivered", "cancel": "cancelled"}[event]
            self._record(Fact(self.state), "")
        elif self.state == "sent" and event == "die":
            self._record(Fact.DEAD, dead_detail("rejected", self.life))
            self.state = "dead"
        elif self.state == "dead" and event == "redrive":
            self.round += 1
            self.life = self.round
            self._record(Fact.REDRIVEN, str(self.round))
            self.state = "sent"

    def _record(self, fact: Fact, detail: str) -> None:
        self.facts[FactKey(TRANSMIT, fact, detail)] = at(1)

    def bin(self, passed: Places) -> Bin:
        """Return the bin of the unit, given the offsets that the readers of its topics have passed."""
        if self.state == "sent":
            was_passed = ("ro" if self.round else "out", 0) in passed
        elif self.state == "parked":
            was_passed = ("ri", 0) in passed
        else:
            return Bin(self.state)
        return Bin.LOST if was_passed else Bin.RETRYING if self.round else Bin.QUEUED


EVENTS = ["park", "hold", "release", "die", "redrive", "deliver", "cancel"]
events = st.lists(st.sampled_from(EVENTS), min_size=10, max_size=40)
UP_TO_THE_RETRIER: Places = {place: offset for place, offset in PASSED.items() if place != ("ro", 0)}


@settings(max_examples=50)
@given(events)
def test_unit_is_in_the_bin_of_its_state_after_any_sequence_of_events(way: list[str]):
    journey = Journey()
    for event in way:
        journey.step(event)
        for passed in ({}, UP_TO_THE_RETRIER, PASSED):
            account = derive(books(journey.facts, passed=passed, reach=REACH))
            assert account.destinations["crm"][journey.bin(passed)] == units(1)


@settings(max_examples=20)
@given(st.lists(st.sampled_from(EVENTS[:5]), min_size=20, max_size=40), st.randoms(use_true_random=True))
def test_order_of_the_facts_does_not_change_the_account(way: list[str], chance: random.Random):
    journey = Journey()
    for event in way:
        journey.step(event)
    expected, told = derive(books(journey.facts, reach=REACH)), list(journey.facts.items())
    for _ in range(10):
        chance.shuffle(told)
        assert derive(books(dict(told), reach=REACH)) == expected


FACT_KEYS = [
    FactKey(INGEST, Fact.SENT, ACKED),
    FactKey(INGEST, Fact.SENT, SEEN),
    FactKey(PROCESS, Fact.SENT),
    FactKey("normalize", Fact.DEAD, "cast"),
    FactKey("route", Fact.FILTERED, "unrouted"),
    FactKey(TRANSFORM, Fact.SENT),
    FactKey(TRANSFORM, Fact.DEAD, "cast"),
    *(FactKey(TRANSMIT, fact) for fact in ("delivered", "duplicate", "cancelled")),
    *(FactKey(TRANSMIT, Fact.DEAD, detail) for detail in ("rejected", "expired/1", "rejected/2")),
    *(FactKey(TRANSMIT, fact, n) for fact, n in itertools.product(("parked", "held", "redriven", "released"), "12")),
]


@given(
    facts=st.dictionaries(st.sampled_from(FACT_KEYS), st.sets(st.integers(0, 20), max_size=12).map(lambda s: at(*s))),
    low=st.dictionaries(
        st.sampled_from([("in", 0), ("out", 0), ("ri", 0), ("t10", 0), ("ro", 0), ("he", 0)]), st.integers(0, 21)
    ),
)
def test_every_unit_is_in_exactly_one_bin(facts: Facts, low: Places):
    account = derive(books(facts, passed=low, reach=REACH))
    for bins in (account.upstream, *account.destinations.values()):
        everything = [unit for members in bins.values() for unit in members]
        assert len(everything) == len(set(everything))
    due = {unit for key, found in facts.items() if "crm" in key.node and key.fact != "released" for unit in found}
    dealt = {unit for members in account.destinations.get("crm", {}).values() for unit, _ in members}
    assert due == dealt


@pytest.mark.parametrize(
    ("slow_low", "bin_"),
    [
        pytest.param(2, Bin.QUEUED, id="the slow lane has not come to it yet"),
        pytest.param(3, Bin.LOST, id="the slow lane is past it and has told nothing"),
    ],
)
def test_unit_sent_to_the_slow_lane_is_queued_until_that_lane_has_passed_it(slow_low: int, bin_: Bin):
    facts = moving(0) | {FactKey(TRANSMIT, Fact.SENT, SLOW): at(0)}
    account = derive(books(facts, passed={("out", 0): 10, ("sl", 0): slow_low}, reach={("sl", 0): 2}))
    assert len(account.destinations["crm"][bin_]) == 1


@pytest.mark.parametrize(
    ("lake_passed", "bin_"), [(4, Bin.QUEUED), (5, Bin.LOST)], ids=["not passed yet", "passed and not delivered"]
)
def test_unit_on_the_lake_topic_is_queued_until_the_lake_query_has_passed_it(lake_passed: int, bin_: Bin):
    facts = moving(1, 2, 3) | {
        FactKey(TRANSMIT, Fact.STORED): at(1, 2, 3),
        FactKey(TRANSMIT, Fact.DELIVERED): at(1),
    }
    account = derive(books(facts, passed={("out", 0): 10, ("la", 0): lake_passed}, reach={("la", 0): 4}))
    assert account.destinations["crm"][Bin.DELIVERED] == units(1)
    assert account.destinations["crm"][bin_] == units(2, 3)


def test_unit_released_into_the_lake_topic_is_queued_there():
    facts = moving(1) | {
        FactKey(TRANSMIT, Fact.HELD, "1"): at(1),
        FactKey(TRANSMIT, Fact.RELEASED, "1"): at(1),
        FactKey(TRANSMIT, Fact.STORED): at(1),
    }
    passed = {("out", 0): 10, ("ro", 0): 10, ("he", 0): 10, ("la", 0): 4}
    account = derive(books(facts, passed=passed, reach={("ro", 0): 4, ("he", 0): 4, ("la", 0): 4}))
    assert account.destinations["crm"][Bin.QUEUED] == units(1)


def in_log(acked: dict[int, BitMap64], seen: dict[int, BitMap64]) -> Facts:
    """Return the facts of what each producer of ingest ACKed and what process read of each."""
    by_producer = {log_key(ACKED, producer): positions for producer, positions in acked.items()}
    return by_producer | {log_key(SEEN, producer): positions for producer, positions in seen.items()}


@pytest.mark.parametrize(
    ("acked", "seen", "lost"),
    [
        pytest.param({1: at(1, 2, 3)}, {1: at(1, 2, 3)}, (), id="all is as it was stored"),
        pytest.param({1: at(1, 3), 2: at(2)}, {1: at(1, 3), 2: at(2)}, (), id="two producers in turn"),
        pytest.param({1: at(1, 2, 3), 2: at(2, 3)}, {1: at(1), 2: at(2, 3)}, (2, 3), id="overwritten unread"),
        pytest.param({1: at(1, 2, 3), 2: at(2, 3)}, {1: at(1, 2, 3)}, (2, 3), id="written where readers had passed"),
        pytest.param({1: at(1, 2, 3)}, {1: at(1, 2), 2: at(3)}, (3,), id="the new one was not ACKed"),
        pytest.param({1: at(1, 2, 3), 2: at(3)}, {1: at(1, 2, 3), 2: at(3)}, (), id="both were read"),
        pytest.param({1: at(1, 2, 3)}, {}, (), id="read by lanes of the release before"),
    ],
)
def test_acked_records_whose_offsets_were_reused_are_lost_by_position(
    acked: dict[int, BitMap64], seen: dict[int, BitMap64], lost: tuple[int, ...]
):
    facts = {**moving(1, 2, 3), FactKey(TRANSMIT, Fact.DELIVERED): at(1, 2, 3), **in_log(acked, seen)}
    account = derive(books(facts, passed={("out", 0): 10}))
    assert account.upstream[Bin.LOST] == UnitSet({OVERWRITTEN: at(*lost)})
    assert account.count(Bin.LOST) == len(lost)
    assert len(account.acked) == 3 + len(lost)
    assert account.destinations["crm"][Bin.DELIVERED] == units(1, 2, 3)
    assert sum(len(line.lost) for line in account.nodes) == len(lost)


def test_overwritten_record_is_queued_until_its_readers_have_passed_it():
    facts = {FactKey(INGEST, Fact.SENT, ACKED): at(1), **in_log({1: at(1), 2: at(1)}, {})}
    account = derive(books(facts, passed={("in", 0): 1}))
    assert (account.count(Bin.QUEUED), account.count(Bin.LOST)) == (2, 0)
    assert derive(books(facts, passed={("in", 0): 2})).count(Bin.LOST) == 2


def test_offset_assigned_twice_to_one_producer_is_lost_if_it_was_acked():
    facts = {**moving(1, 2), FactKey(LOG, Fact.SENT, REUSED): at(2, 7), **in_log({1: at(1, 2)}, {1: at(1, 2)})}
    account = derive(books(facts, passed={("out", 0): 10}))
    assert account.upstream[Bin.LOST] == UnitSet({OVERWRITTEN: at(2)})


KEYS = [
    FactKey(INGEST, Fact.SENT, ACKED),
    FactKey(INGEST, Fact.SENT, SEEN),
    FactKey(PROCESS, Fact.SENT),
    FactKey("normalize", Fact.FILTERED),
    FactKey(TRANSFORM, Fact.SENT),
    FactKey(TRANSFORM, Fact.FILTERED),
    FactKey(TRANSMIT, Fact.DELIVERED),
    FactKey("transmit:erp", Fact.DELIVERED),
    FactKey("dedup", Fact.DUPLICATE),
    log_key(ACKED, 1),
    log_key(SEEN, 2),
    FactKey(LOG, Fact.SENT, REUSED),
]


@given(st.dictionaries(st.sampled_from(KEYS), st.sets(st.integers(0, 9)), max_size=len(KEYS)))
def test_counts_of_a_healthy_bucket_are_those_of_its_account(found: dict[FactKey, set[int]]):
    one = books({key: at(*offsets) for key, offsets in found.items()})
    account = derive(one)
    assert healthy_counts(one.facts) == (len(account.acked), account.count(Bin.DELIVERED))
    assert not any(account.count(name) for name in (Bin.DEAD, Bin.HELD, Bin.RETRYING))


@given(st.dictionaries(st.sampled_from([*KEYS, *FACT_KEYS]), st.sets(st.integers(0, 3)), max_size=8))
def test_bucket_is_all_delivered_only_if_each_unit_of_its_account_is(found: dict[FactKey, set[int]]):
    one = books({key: at(*offsets) for key, offsets in found.items() if offsets})
    account = derive(one)
    assert not (all_are_delivered(one.facts) and any(account.count(name) for name in Bin if name != Bin.DELIVERED))
    plain = all(key.fact in (Fact.SENT, Fact.DELIVERED) and not key.child for key in one.facts)
    if plain and not any(account.count(name) for name in Bin if name != Bin.DELIVERED):
        assert all_are_delivered(one.facts)


def test_bucket_is_all_delivered_once_its_last_unit_is():
    facts = moving(1, 2)
    assert not all_are_delivered(facts)
    assert not all_are_delivered({**facts, FactKey(TRANSMIT, Fact.DELIVERED): at(1)})
    assert all_are_delivered({**facts, FactKey(TRANSMIT, Fact.DELIVERED): at(1, 2)})
    ingested = {FactKey(INGEST, Fact.SENT, ACKED): at(1, 2, 3)}
    assert not all_are_delivered({**facts, FactKey(TRANSMIT, Fact.DELIVERED): at(1, 2), **ingested})


@pytest.mark.parametrize(
    "key",
    [
        FactKey(TRANSMIT, Fact.DEAD, "rejected"),
        FactKey(TRANSMIT, Fact.PARKED, "1"),
        FactKey("normalize", Fact.HELD, "0"),
        FactKey(TRANSMIT, Fact.CANCELLED),
        FactKey("normalize", Fact.SENT, "exploded"),
        FactKey(TRANSMIT, Fact.DELIVERED, "", 1),
        FactKey("lake", Fact.DELIVERED),
    ],
    ids=str,
)
def test_bucket_with_a_failure_a_wait_or_a_split_message_has_no_healthy_counts(key: FactKey):
    assert healthy_counts(moving(1, 2)) == (2, 0)
    assert healthy_counts({**moving(1, 2), key: at(1)}) is None
