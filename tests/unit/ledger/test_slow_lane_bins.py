"""Units that a process lane passed to the slow lane: queued while that may have them, then through, or lost by name."""

from pyroaring import BitMap64

from controlplane.observer.seal import why_open
from controlplane.observer.sealing import _progress
from dataplane.ledger.bins import Account, Bin, Books, derive
from dataplane.ledger.facts import ACKED, INGEST, PROCESS, SEEN, SLOW, Fact, FactKey
from dataplane.ledger.units import position_of
from dataplane.ledger.unitset import UnitSet
from dataplane.names import ENTRANCE

ONE, TWO, THREE = PLACES = [position_of(1, 0, offset) for offset in (1, 2, 3)]
SLOW_AT, IN_AT = ("process-slow", 0), ("in", 0)
DIVERTED = FactKey(ENTRANCE, Fact.SENT, SLOW)


def books(more: dict[FactKey, list[int]], *, slow: int) -> Books:
    """Three messages, up to offset 3 of ingest; what is diverted reaches offset 7, read up to `slow`."""
    facts = {FactKey(INGEST, Fact.SENT, ACKED): PLACES, FactKey(INGEST, Fact.SENT, SEEN): PLACES, **more}
    bitmaps = {key: BitMap64(positions) for key, positions in facts.items()}
    topics = {"ingest": [("in", 1)], "process-slow": [("process-slow", 1)], "egress": [("out", 1)]}
    return Books(bitmaps, {SLOW_AT: 7}, {SLOW_AT: slow, IN_AT: 4}, topics)  # type: ignore[arg-type]


def derived(more: dict[FactKey, list[int]], *, slow: int) -> Account:
    return derive(books(more, slow=slow))


def at(*positions: int) -> UnitSet:
    return UnitSet.of(positions)


def test_they_are_queued_until_the_slow_lane_is_past_them():
    account = derived({DIVERTED: [ONE, TWO], FactKey(PROCESS, Fact.SENT): [THREE]}, slow=7)
    assert account.upstream[Bin.QUEUED] == at(ONE, TWO)
    assert account.count(Bin.LOST) == 0


def test_then_each_is_through_or_lost_and_named():
    account = derived({DIVERTED: [ONE, TWO], FactKey(PROCESS, Fact.SENT): [ONE, THREE]}, slow=8)
    assert account.upstream[Bin.LOST] == at(TWO)
    assert account.upstream[Bin.QUEUED] == at()


def test_a_minute_is_open_until_the_slow_lane_is_past_it():
    ends = {IN_AT: 4}
    assert "7 of 8 on process-slow/0" in why_open(_progress(books({DIVERTED: [ONE]}, slow=7), ends))
    assert why_open(_progress(books({DIVERTED: [ONE]}, slow=8), ends)) == ""


def test_a_minute_of_a_pipe_that_was_never_there_does_not_wait_for_the_slow_lane():
    assert why_open(_progress(books({}, slow=0), {IN_AT: 4})) == ""
