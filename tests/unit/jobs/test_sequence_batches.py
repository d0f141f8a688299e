"""The breaks of one batch of the sequence query: the newest report of each, and a bounded number of a pipe."""

import msgspec

from dataplane.jobs.sequence import MOST_BREAKS, BreakBook
from dataplane.ledger.sequence_breaks import SequenceBreak


def gap(position: int, missing: int, pipe: str = "p") -> SequenceBreak:
    ranges = [(2, 1 + missing)] if missing else []
    return SequenceBreak(pipe, 1, "shop", "k", "gap", 1, position, 2, False, 9, 1, ranges)


def test_newest_report_of_a_gap_replaces_the_earlier_ones():
    book = BreakBook()
    for one in (gap(1, 3), gap(2, 5), gap(1, 2)):
        book.add(one)
    assert [(one.position, one.missing) for one in book.of_all()] == [(1, 2), (2, 5)]


def test_new_breaks_of_a_kind_are_bounded_and_other_pipes_and_kinds_keep_theirs():
    book = BreakBook()
    for number in range(MOST_BREAKS + 5):
        book.add(gap(number, 7))
    book.add(gap(1, 7, "q"))
    book.add(msgspec.structs.replace(gap(1, 0), kind="repeated"))
    found = book.of_all()
    assert len(found) == MOST_BREAKS + 2
    assert {(one.pipe, one.kind) for one in found} == {("p", "gap"), ("q", "gap"), ("p", "repeated")}


def test_every_update_of_a_gap_is_reported_so_that_no_closed_one_stays_listed_as_missing():
    book = BreakBook()
    for number in range(MOST_BREAKS):
        book.add(gap(number, 7))
    for number in range(1_000, 1_000 + 2 * MOST_BREAKS):
        book.add(gap(number, number % 2))
    assert len(book.of_all()) == 3 * MOST_BREAKS
