"""Lags and process durations between two checkpoints, with the figures of the talk."""

import pytest

from dataplane.ledger.audit import LagSet
from dataplane.ledger.breakdown import SLICES, Breakdown, Slice
from dataplane.ledger.sketch import LagSketch
from dataplane.runtime.telemetry.lags import LagBook

MS = 1_000
NOW = 1_790_000_000_000_000
KEY = ("p", "n", 1)


def by_way(found: list[LagSet]) -> dict[str, LagSketch]:
    return {one.way: LagSketch.decode(one.sketch) for one in found}


def spent(**slices_us: int) -> list[int]:
    row = [0] * SLICES
    for name, took_us in slices_us.items():
        row[Slice[name.upper()]] = took_us
    return row


def test_lags_and_process_durations_match_the_talk():
    """Lag in 1, 5, 10 ms and lag out 3, 8, 12 ms at three nodes: durations 2, 3, 2 ms, end to end 12 ms."""
    book = LagBook()
    nodes = {"ingest": (1, 3), "normalize": (5, 8), "transmit:crm": (10, 12)}
    for node, (lag_in, lag_out) in nodes.items():
        book.add_group(("p", node, 1), NOW + lag_in * MS, (lag_out - lag_in) * MS, [NOW] * 10)
    found = {(one.node, one.way): LagSketch.decode(one.sketch) for one in book.take()}
    assert [found[node, "in"].max_us for node in nodes] == [1 * MS, 5 * MS, 10 * MS]
    assert [found[node, "own"].max_us for node in nodes] == [2 * MS, 3 * MS, 2 * MS]
    assert [found[node, "out"].max_us for node in nodes] == [3 * MS, 8 * MS, 12 * MS]
    for sketch in found.values():
        assert sketch.count == 10
        assert sketch.quantile(0.5) == pytest.approx(sketch.max_us, rel=0.01)


def test_single_and_bulk_additions_give_the_same_sketches():
    times = [NOW - n * 137 for n in range(1_000)]
    at_once, single, each = LagBook(), LagBook(), LagBook()
    at_once.add_group(KEY, NOW, 70, times)
    for time in times:
        single.add(KEY, NOW - time, 70)
    each.add_all(KEY, [NOW - time for time in times], [70] * len(times))
    assert at_once.take() == single.take() == each.take()


def test_groups_and_single_messages_share_one_sketch():
    book = LagBook()
    book.add(KEY, 5, 1)
    book.add_group(KEY, NOW, 2, [NOW - 7, NOW - 9])
    book.add_group(KEY, NOW, 3, [NOW - 3])
    found = by_way(book.take())
    assert {way: (one.count, one.min_us, one.max_us) for way, one in found.items()} == {
        "in": (4, 3, 9),
        "out": (4, 6, 11),
        "own": (4, 1, 3),
    }


def test_all_lag_sets_of_a_node_cover_the_same_messages():
    book = LagBook()
    book.add_group(KEY, NOW, 2, [NOW] * 40)
    book.add(KEY, 1, 1)
    book.add_delivered(KEY, 3, 4, spent(transmit=3))
    assert {way: one.count for way, one in by_way(book.take()).items()} == {"in": 42, "out": 42, "own": 42}


def test_source_clock_ahead_of_ours_gives_negative_lags_and_does_not_affect_durations():
    book = LagBook()
    book.add_group(KEY, NOW, 1, [NOW + 5, NOW + 6])
    book.add_delivered(KEY, 3, -900, spent(ingest=2, transmit=3))
    taken = book.take()
    found = by_way(taken)
    assert (found["in"].min_us, found["own"].min_us) == (-898, 1)
    (breakdown,) = [Breakdown.decode(one.breakdown) for one in taken if one.breakdown]
    assert (breakdown.source.max_us, breakdown.whole.max_us, breakdown.sum_us) == (-900, 5, 5)


@pytest.mark.parametrize("count", [1, 5, 400])
def test_departure_of_a_delivered_message_includes_all_of_its_time(count: int):
    book = LagBook()
    for n in range(count):
        book.add_delivered(KEY, 30 + n, 1_000, spent(ingest=5, retry=7, transmit=30 + n))
    taken = book.take()
    found = by_way(taken)
    assert (found["in"].min_us, found["in"].max_us) == (1_012, 1_012)
    assert (found["out"].min_us, found["out"].max_us) == (1_042, 1_041 + count)
    assert [bool(one.breakdown) for one in taken] == [False, True, False]
    assert Breakdown.decode(taken[1].breakdown).count == count


def test_lags_are_separate_by_pipe_node_and_bucket_and_reported_once():
    book = LagBook()
    keys = [(p, n, b) for p in "pq" for n in ("normalize", "transform:crm") for b in (1, 2)]
    for lag, key in enumerate(keys):
        book.add(key, lag, 0)
    found = [one for one in book.take() if one.way == "in"]
    taken = {(one.pipe, one.node, one.bucket): LagSketch.decode(one.sketch).max_us for one in found}
    assert taken == {key: lag for lag, key in enumerate(keys)}
    assert book.take() == []
