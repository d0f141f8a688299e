"""Redrive job: each wanted offset is stored or known to be gone, in order; progress never runs ahead."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pyroaring import BitMap64

from dataplane.ledger.deadletter import DeadLetterReason, dead_headers
from dataplane.ledger.facts import Fact
from dataplane.ledger.meta import MessageMeta, read_meta
from dataplane.retrier.redrive_job import RedriveJob, What, fact_of, is_for, returned_record
from dataplane.retrier.release_pacer import DestinationKey
from tests.support.memory_lane import message

CRM = DestinationKey("p", "crm")
ONE, TWO = ("held", 0), ("held", 1)
PLACES = (ONE, TWO)


def job_of(what: What = "release", **more: dict[tuple[str, int], int]) -> RedriveJob:
    return RedriveJob(CRM, what, {ONE: BitMap64([3, 5, 9])}, more.get("reached", {}))


def test_job_reads_at_the_next_wanted_offset():
    work = RedriveJob(CRM, "release", {TWO: BitMap64([1]), ONE: BitMap64([3])}, {})
    assert work.next_offset() == (TWO, 1), "in the order of the given partitions"
    work.wants(TWO, 1)
    assert work.next_offset() == (ONE, 3)
    work.wants(ONE, 3)
    assert work.next_offset() is None


def test_offsets_done_before_are_not_done_again():
    work = job_of(reached={ONE: 5})
    assert work.next_offset() == (ONE, 5)
    assert not work.wants(ONE, 3)
    assert work.total == 3


def test_missing_offset_is_skipped_and_counted():
    work = job_of()
    assert work.wants(ONE, 5), "offset 3 is gone"
    work.ended(ONE)
    work.stored(ONE, 5)
    assert (work.skipped_below(work.reached()), work.is_over, work.reached()) == (2, True, {ONE: 10})
    assert work.done_below(work.reached()) == 3


class RedriveJobMachine(RuleBasedStateMachine):
    """Records are read in order with gaps and stored in any order; after a crash the job resumes at `reached`."""

    @initialize(
        wanted=st.dictionaries(st.sampled_from(PLACES), st.sets(st.integers(0, 30), max_size=12)),
        there=st.dictionaries(st.sampled_from(PLACES), st.sets(st.integers(0, 30), max_size=25)),
    )
    def begin(self, wanted: dict[tuple[str, int], set[int]], there: dict[tuple[str, int], set[int]]) -> None:
        self.wanted = wanted
        self.there = {place: sorted(there.get(place, set())) for place in wanted}
        self.stored: set[tuple[tuple[str, int], int]] = set()
        self.unusable: dict[tuple[tuple[str, int], int], bool] = {}  # by the last decision
        self.reported = 0  # skipped before earlier crashes
        self._start({})

    def _start(self, reached: dict[tuple[str, int], int]) -> None:
        bitmaps = {place: BitMap64(offsets) for place, offsets in self.wanted.items()}
        self.job = RedriveJob(CRM, "release", bitmaps, reached)
        self.open: list[tuple[tuple[str, int], int]] = []

    @precondition(lambda self: self.job.next_offset() is not None)
    @rule(count=st.integers(1, 5))
    def read_on(self, count: int) -> None:
        next_ = self.job.next_offset()
        assert next_ is not None
        place, first = next_
        coming = [offset for offset in self.there[place] if offset >= first]
        for offset in coming[:count]:
            if self.job.wants(place, offset):
                self.open.append((place, offset))
        if len(coming) < count:
            self.job.ended(place)

    @precondition(lambda self: self.open)
    @rule(choice=st.integers(0, 100), unusable=st.booleans())
    def one_is_stored(self, choice: int, unusable: bool) -> None:
        place, offset = self.open.pop(choice % len(self.open))
        if unusable:
            self.job.skip(place, offset)
        else:
            self.job.stored(place, offset)
        self.stored.add((place, offset))
        self.unusable[place, offset] = unusable

    @rule()
    def crash(self) -> None:
        self.reported += self.job.skipped_below(self.job.reached())
        self._start(self.job.reached())

    @invariant()
    def everything_below_what_was_reached_is_stored_or_was_not_there(self) -> None:
        for place, reached in self.job.reached().items():
            below = {(place, o) for o in self.wanted[place] if o < reached and o in self.there[place]}
            assert below <= self.stored

    @invariant()
    def what_was_skipped_below_is_counted_once_however_often_it_crashed(self) -> None:
        reached = self.job.reached()
        below = {(place, o) for place, offsets in self.wanted.items() for o in offsets if o < reached[place]}
        skipped = {one for one in below if one[1] not in self.there[one[0]] or self.unusable[one]}
        assert self.reported + self.job.skipped_below(reached) == len(skipped)

    @invariant()
    def when_it_is_over_all_that_was_there_is_stored(self) -> None:
        if self.job.is_over:
            there = {(place, o) for place, offsets in self.wanted.items() for o in offsets if o in self.there[place]}
            assert there <= self.stored
            assert all(self.job.reached()[place] > max(offsets) for place, offsets in self.wanted.items() if offsets)


TestRedriveJob = RedriveJobMachine.TestCase
TestRedriveJob.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)


def letter(node: str = "transmit:crm", **changes: Any) -> tuple[MessageMeta, list[tuple[str, bytes]]]:
    headers = message(0, attempt=3, first_us=5, tried=2, not_before_us=9, **changes).headers()
    meta = read_meta(headers)
    return meta, dead_headers(meta, headers, DeadLetterReason(node, "rejected", "returned 400", "400\nno"))


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
def test_job_returns_only_messages_of_its_kind(what: What, node: str, changes: dict[str, str], expected: bool):
    assert is_for(job_of(what), letter(node, **changes)[0], DeadLetterReason(node, "step")) is expected


@pytest.mark.parametrize(
    ("death", "expected"),
    [
        (DeadLetterReason("normalize", "step"), True),
        (DeadLetterReason("enrich", "no-row"), True),
        (DeadLetterReason("route", "route"), True),
        (DeadLetterReason("route", "route", part=True), False),
        (DeadLetterReason("transform:crm", "step"), False),
        (DeadLetterReason("transmit:crm", "rejected"), False),
        (DeadLetterReason("", ""), False),
    ],
)
def test_job_without_a_destination_returns_events_that_ended_in_the_steps(death: DeadLetterReason, expected: bool):
    meta = letter(destination="")[0]
    work = RedriveJob(DestinationKey("p", ""), "redrive", {}, {})
    assert is_for(work, meta, death) is expected


def test_event_that_ended_in_the_steps_begins_a_new_life_before_them():
    meta, headers = letter("route", destination="")
    back, _ = returned_record("redrive", meta, headers)
    assert (back.attempt, back.life) == (4, 4)
    assert fact_of("redrive", back) == ("normalize", Fact.REDRIVEN, "4", 0)


def test_dead_letter_begins_a_new_life_with_its_old_id():
    meta, headers = letter()
    back, alive = returned_record("redrive", meta, headers)
    assert (back.id, back.attempt, back.life, back.first_us, back.tried, back.not_before_us) == (meta.id, 4, 4, 0, 0, 0)
    assert alive[0][0] == "penstock-meta"
    assert alive[1:] == [("content-type", b"application/json")], "without the headers of the dead letter"
    assert fact_of("redrive", back) == ("transmit:crm", Fact.REDRIVEN, "4", 0)


def test_second_redrive_of_a_dead_letter_gives_the_same_unit():
    meta, headers = letter()
    assert returned_record("redrive", meta, headers)[0] == returned_record("redrive", meta, headers)[0]


def test_held_message_keeps_its_round_and_restarts_its_retry_horizon():
    meta, headers = letter()
    back, _ = returned_record("release", meta, headers)
    assert (back.attempt, back.life, back.first_us, back.tried) == (3, 0, 0, 0)
    assert fact_of("release", back) == ("transmit:crm", Fact.RELEASED, "3", 0)
    assert not back.through


def test_held_message_that_a_person_selected_is_let_through():
    back, _ = returned_record("release", *letter(), through=True)
    assert back.through


def test_early_released_message_keeps_its_retry_horizon():
    meta, headers = letter()
    back, _ = returned_record("ahead", meta, headers)
    assert (back.attempt, back.first_us, back.tried) == (3, 5, 2)
