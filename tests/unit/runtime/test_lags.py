"""Lags between two checkpoints, with the talk's own figures."""

import pytest

from dataplane.ledger.audit import LagSet
from dataplane.ledger.sketch import Sketch
from dataplane.runtime.lags import LagBook

MS = 1_000
NOW = 1_790_000_000_000_000


def maximum(found: LagSet) -> int:
    return Sketch.decode(found.sketch).max_us


def test_the_talks_lags_and_process_durations():
    """Lag in 1, 5, 10 ms and lag out 3, 8, 12 ms at three nodes: durations 2, 3, 2 ms, end to end 12 ms."""
    book = LagBook()
    nodes = {"ingest": (1, 3), "normalize": (5, 8), "transmit:crm": (10, 12)}
    for node, (lag_in, lag_out) in nodes.items():
        book.add_pass(("p", node, 1, "in"), NOW + lag_in * MS, [NOW] * 10)
        book.add_pass(("p", node, 1, "out"), NOW + lag_out * MS, [NOW] * 10)
    found = {(lag.node, lag.way): Sketch.decode(lag.sketch) for lag in book.take()}
    assert [found[node, "in"].max_us for node in nodes] == [1 * MS, 5 * MS, 10 * MS]
    assert [found[node, "out"].max_us for node in nodes] == [3 * MS, 8 * MS, 12 * MS]
    durations = [found[node, "out"].max_us - found[node, "in"].max_us for node in nodes]
    assert durations == [2 * MS, 3 * MS, 2 * MS]
    for sketch in found.values():
        assert sketch.count == 10
        assert sketch.quantile(0.5) == pytest.approx(sketch.max_us, rel=0.01)


def test_one_by_one_and_all_at_once_give_the_same_sketch():
    times = [NOW - n * 137 for n in range(1_000)]
    at_once, single = LagBook(), LagBook()
    at_once.add_pass(("p", "n", 1, "in"), NOW, times)
    for time in times:
        single.add(("p", "n", 1, "in"), NOW - time)
    assert at_once.take() == single.take()


def test_both_ways_of_adding_meet_in_one_sketch():
    book = LagBook()
    book.add(("p", "n", 1, "in"), 5)
    book.add_pass(("p", "n", 1, "in"), NOW, [NOW - 7, NOW - 9])
    book.add_pass(("p", "n", 1, "in"), NOW, [NOW - 3])
    (found,) = book.take()
    sketch = Sketch.decode(found.sketch)
    assert (sketch.count, sketch.min_us, sketch.max_us) == (4, 3, 9)


def test_a_source_clock_ahead_of_ours_is_kept_negative():
    book = LagBook()
    book.add_pass(("p", "n", 1, "in"), NOW, [NOW + 5, NOW + 6])
    assert Sketch.decode(book.take()[0].sketch).min_us == -6


def test_pipes_nodes_buckets_and_ways_are_kept_apart_and_taken_once():
    book = LagBook()
    keys = [(p, n, b, w) for p in "pq" for n in ("normalize", "transform:crm") for b in (1, 2) for w in ("in", "out")]
    for lag, key in enumerate(keys):
        book.add(key, lag)
    taken = book.take()
    assert {(f.pipe, f.node, f.bucket, f.way): maximum(f) for f in taken} == {key: lag for lag, key in enumerate(keys)}
    assert book.take() == []
