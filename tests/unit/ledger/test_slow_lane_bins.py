"""Bins of units passed on before the steps, to the slow lane or the bulk query: queued, then processed or lost."""

import pytest
from pyroaring import BitMap64

from controlplane.observer.seal import why_open
from controlplane.observer.sealing import _progress
from dataplane.ledger.bins import Bin, BucketAccount, BucketFacts, derive
from dataplane.ledger.facts import ACKED, BULK, INGEST, PROCESS, SEEN, SLOW, Fact, FactKey
from dataplane.ledger.units import position_of
from dataplane.ledger.unitset import UnitSet
from dataplane.names import ENTRANCE, Purpose

ONE, TWO, THREE = PLACES = [position_of(1, 0, offset) for offset in (1, 2, 3)]
IN_AT = ("in", 0)
READERS = pytest.mark.parametrize(("topic", "detail"), [("process-slow", SLOW), ("bulk", BULK)])


def diverted(detail: str, *positions: int) -> dict[FactKey, list[int]]:
    """Return the fact that units were passed on."""
    return {FactKey(ENTRANCE, Fact.SENT, detail): [*positions]}


def books(topic: Purpose, more: dict[FactKey, list[int]], *, passed: int) -> BucketFacts:
    """Return the facts of three messages (to ingest offset 3); those passed on reach offset 7, read to `passed`."""
    facts = {FactKey(INGEST, Fact.SENT, ACKED): PLACES, FactKey(INGEST, Fact.SENT, SEEN): PLACES, **more}
    bitmaps = {key: BitMap64(positions) for key, positions in facts.items()}
    topics: dict[Purpose, list[tuple[str, int]]] = {"ingest": [("in", 1)], topic: [(topic, 1)], "egress": [("out", 1)]}
    return BucketFacts(bitmaps, {(topic, 0): 7}, {(topic, 0): passed, IN_AT: 4}, topics)


def derived(topic: Purpose, more: dict[FactKey, list[int]], *, passed: int) -> BucketAccount:
    return derive(books(topic, more, passed=passed))


def through(*positions: int) -> dict[FactKey, list[int]]:
    """Return the facts of units that passed the route and were sent to crm."""
    return {FactKey(PROCESS, Fact.SENT): [*positions], FactKey("transform:crm", Fact.SENT): [*positions]}


def at(*positions: int) -> UnitSet:
    return UnitSet.of(positions)


@READERS
def test_units_passed_on_are_queued_until_their_reader_has_passed_them(topic: Purpose, detail: str):
    account = derived(topic, diverted(detail, ONE, TWO) | through(THREE), passed=7)
    assert account.upstream[Bin.QUEUED] == at(ONE, TWO)
    assert account.count(Bin.LOST) == 0


@READERS
def test_unit_that_the_reader_has_passed_is_processed_or_lost_by_position(topic: Purpose, detail: str):
    account = derived(topic, diverted(detail, ONE, TWO) | through(ONE, THREE), passed=8)
    assert account.upstream[Bin.LOST] == at(TWO)
    assert account.upstream[Bin.QUEUED] == at()


@READERS
def test_minute_is_open_until_the_reader_has_passed_it(topic: Purpose, detail: str):
    ends = {IN_AT: 4}
    assert f"7 of 8 on {topic}/0" in why_open(_progress(books(topic, diverted(detail, ONE), passed=7), ends))
    assert why_open(_progress(books(topic, diverted(detail, ONE), passed=8), ends)) == ""


@READERS
def test_minute_without_units_passed_on_does_not_wait_for_the_reader(topic: Purpose, detail: str):
    assert detail
    assert why_open(_progress(books(topic, {}, passed=0), {IN_AT: 4})) == ""
