"""An errand: every offset it asks for is stored or known to be gone, in order, and where it got to is never too far."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pyroaring import BitMap64

from dataplane.ledger.deadletter import Death, dead_headers
from dataplane.ledger.facts import Fact
from dataplane.ledger.meta import Meta, read_meta
from dataplane.retrier.errand import Errand, What, brought_back, fact_of, is_for
from dataplane.retrier.pace import Name
from tests.rig.memory_lane import message

CRM = Name("p", "crm")
ONE, TWO = ("held", 0), ("held", 1)
PLACES = (ONE, TWO)


def errand(what: What = "release", **more: dict[tuple[str, int], int]) -> Errand:
    return Errand(CRM, what, {ONE: BitMap64([3, 5, 9])}, more.get("reached", {}))


def test_it_reads_where_the_next_wanted_one_is():
    work = Errand(CRM, "release", {TWO: BitMap64([1]), ONE: BitMap64([3])}, {})
    assert work.next_place() == (ONE, 3), "in the order of places"
    work.wants(ONE, 3)
    assert work.next_place() == (TWO, 1)
    work.wants(TWO, 1)
    assert work.next_place() is None


def test_what_was_done_before_is_not_done_again():
    work = errand(reached={ONE: 5})
    assert work.next_place() == (ONE, 5)
    assert not work.wants(ONE, 3)
    assert work.total == 3


def test_what_never_comes_is_skipped_and_counted():
    work = errand()
    assert work.wants(ONE, 5), "3 is gone"
    work.ended(ONE)
    work.stored(ONE, 5)
    assert (work.skipped_below(work.reached()), work.is_over, work.reached()) == (2, True, {ONE: 10})
    assert work.done_below(work.reached()) == 3


class ErrandMachine(RuleBasedStateMachine):
    """Records come in order with gaps, are stored in any order; a crash goes on from what had been reached."""

    @initialize(
        wanted=st.dictionaries(st.sampled_from(PLACES), st.sets(st.integers(0, 30), max_size=12)),
        there=st.dictionaries(st.sampled_from(PLACES), st.sets(st.integers(0, 30), max_size=25)),
    )
    def begin(self, wanted: dict[tuple[str, int], set[int]], there: dict[tuple[str, int], set[int]]) -> None:
        self.wanted = wanted
        self.there = {place: sorted(there.get(place, set())) for place in wanted}
        self.stored: set[tuple[tuple[str, int], int]] = set()
        self.useless: dict[tuple[tuple[str, int], int], bool] = {}  # as it was judged last
        self.told = 0  # skipped in earlier lives
        self._start({})

    def _start(self, reached: dict[tuple[str, int], int]) -> None:
        bitmaps = {place: BitMap64(offsets) for place, offsets in self.wanted.items()}
        self.errand = Errand(CRM, "release", bitmaps, reached)
        self.open: list[tuple[tuple[str, int], int]] = []

    @precondition(lambda self: self.errand.next_place() is not None)
    @rule(count=st.integers(1, 5))
    def read_on(self, count: int) -> None:
        next_ = self.errand.next_place()
        assert next_ is not None
        place, first = next_
        coming = [offset for offset in self.there[place] if offset >= first]
        for offset in coming[:count]:
            if self.errand.wants(place, offset):
                self.open.append((place, offset))
        if len(coming) < count:
            self.errand.ended(place)

    @precondition(lambda self: self.open)
    @rule(choice=st.integers(0, 100), useless=st.booleans())
    def one_is_stored(self, choice: int, useless: bool) -> None:
        place, offset = self.open.pop(choice % len(self.open))
        if useless:
            self.errand.useless(place, offset)
        else:
            self.errand.stored(place, offset)
        self.stored.add((place, offset))
        self.useless[place, offset] = useless

    @rule()
    def crash(self) -> None:
        self.told += self.errand.skipped_below(self.errand.reached())
        self._start(self.errand.reached())

    @invariant()
    def everything_below_what_was_reached_is_stored_or_was_not_there(self) -> None:
        for place, reached in self.errand.reached().items():
            below = {(place, o) for o in self.wanted[place] if o < reached and o in self.there[place]}
            assert below <= self.stored

    @invariant()
    def what_was_skipped_below_is_counted_once_however_often_it_crashed(self) -> None:
        reached = self.errand.reached()
        below = {(place, o) for place, offsets in self.wanted.items() for o in offsets if o < reached[place]}
        skipped = {one for one in below if one[1] not in self.there[one[0]] or self.useless[one]}
        assert self.told + self.errand.skipped_below(reached) == len(skipped)

    @invariant()
    def when_it_is_over_all_that_was_there_is_stored(self) -> None:
        if self.errand.is_over:
            there = {(place, o) for place, offsets in self.wanted.items() for o in offsets if o in self.there[place]}
            assert there <= self.stored
            assert all(self.errand.reached()[place] > max(offsets) for place, offsets in self.wanted.items() if offsets)


TestErrand = ErrandMachine.TestCase
TestErrand.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)


def letter(node: str = "transmit:crm", **changes: Any) -> tuple[Meta, list[tuple[str, bytes]]]:
    headers = message(0, attempt=3, first_us=5, tried=2, not_before_us=9, **changes).headers()
    meta = read_meta(headers)
    return meta, dead_headers(meta, headers, Death(node, "rejected", "answered 400", "400\nno"))


@pytest.mark.parametrize(
    ("what", "node", "changes", "expected"),
    [
        ("redrive", "transmit:crm", {}, True),
        ("redrive", "transform:crm", {}, False),
        ("redrive", "normalize", {}, False),
        ("redrive", "transmit:crm", {"destination": "log"}, False),
        ("redrive", "transmit:crm", {"pipe": "q"}, False),
        ("release", "", {}, True),
        ("ahead", "", {"destination": "log"}, False),
    ],
)
def test_only_what_the_errand_is_for_is_brought_back(what: What, node: str, changes: dict[str, str], expected: bool):
    assert is_for(errand(what), letter(node, **changes)[0], node) is expected


def test_a_dead_letter_begins_a_new_life_under_its_old_id():
    meta, headers = letter()
    back, alive = brought_back("redrive", meta, headers)
    assert (back.id, back.attempt, back.life, back.first_us, back.tried, back.not_before_us) == (meta.id, 4, 4, 0, 0, 0)
    assert alive[0][0] == "penstock-meta"
    assert alive[1:] == [("content-type", b"application/json")], "without the marks of its death"
    assert fact_of("redrive", back) == ("transmit:crm", Fact.REDRIVEN, "4", 0)


def test_bringing_it_back_twice_makes_the_same_unit_twice():
    meta, headers = letter()
    assert brought_back("redrive", meta, headers)[0] == brought_back("redrive", meta, headers)[0]


def test_a_held_message_keeps_its_round_and_begins_its_span_anew():
    meta, headers = letter()
    back, _ = brought_back("release", meta, headers)
    assert (back.attempt, back.life, back.first_us, back.tried) == (3, 0, 0, 0)
    assert fact_of("release", back) == ("transmit:crm", Fact.RELEASED, "3", 0)
    assert not back.through


def test_what_somebody_chose_among_the_held_goes_through():
    back, _ = brought_back("release", *letter(), through=True)
    assert back.through


def test_what_comes_ahead_of_its_time_goes_on_with_its_span():
    meta, headers = letter()
    back, _ = brought_back("ahead", meta, headers)
    assert (back.attempt, back.first_us, back.tried) == (3, 5, 2)
