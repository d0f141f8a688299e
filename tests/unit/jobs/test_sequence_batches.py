"""The breaks of one batch of the sequence query: the newest report of each, and a bounded number of a pipe."""

from dataplane.jobs.sequence import MOST_BREAKS, BreakBook
from dataplane.ledger.sequence_breaks import SequenceBreak


def gap(position: int, missing: int, pipe: str = "p") -> SequenceBreak:
    return SequenceBreak(pipe, "shop", "k", "gap", 1, position, 2, False, 9, 1, missing)


def test_newest_report_of_a_gap_replaces_the_earlier_ones():
    book = BreakBook()
    for one in (gap(1, 3), gap(2, 5), gap(1, 2)):
        book.add(one)
    assert [(one.position, one.missing) for one in book.of_all()] == [(1, 2), (2, 5)]


def test_breaks_of_a_pipe_are_bounded_and_other_pipes_keep_theirs():
    book = BreakBook()
    for number in range(MOST_BREAKS + 5):
        book.add(gap(number, 1))
    book.add(gap(0, 0))
    book.add(gap(1, 1, "q"))
    found = book.of_all()
    assert len(found) == MOST_BREAKS + 1
    assert (found[0].missing, found[-1].pipe) == (0, "q")
