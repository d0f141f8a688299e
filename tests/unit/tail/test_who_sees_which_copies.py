"""Copies on their way to who looks on: each pipe's own, once, from where they were left, and nobody waits."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgmt.sandbox import FilterRefusedError
from mgmt.tail import Cursor, TailFilter, parse_cursor
from mgmt.tail.copies import Newest
from mgmt.tail.stream import Pace
from mgmt.tail.viewer import KEPT, WAITING, Feed, Taken, Viewer
from tests.rig.copies import copy_at


def fed(offsets: Iterable[int], first: int = 0) -> Feed:
    feed = Feed()
    feed.begin(first, first)
    for offset in offsets:
        feed.add(copy_at(offset))
    return feed


def seen(viewer: Viewer) -> list[int]:
    return [copy.offset for copy in viewer.take(0).copies]


def test_who_begins_with_what_comes_sees_nothing_older():
    feed, viewer = fed(range(5)), Viewer("p")
    feed.join(viewer)
    feed.add(copy_at(5))
    assert seen(viewer) == [5]


def test_who_comes_back_with_a_cursor_sees_what_passed_meanwhile_and_then_what_comes():
    feed, viewer = fed(range(5)), Viewer("p", 2)
    feed.join(viewer)
    feed.add(copy_at(5))
    assert seen(viewer) == [3, 4, 5]
    assert viewer.take(0) == Taken([], 5, 0, False)


def test_another_pipes_copies_move_the_cursor_and_are_not_shown():
    feed, viewer = fed(range(2)), Viewer("q", 1)
    feed.join(viewer)
    feed.add(copy_at(2))
    assert viewer.take(0) == Taken([], 2, 0, False)


@pytest.mark.parametrize(
    ("after", "goes_on", "gap"),
    [
        pytest.param(8, 9, True, id="older than what is kept"),
        pytest.param(9, 10, False, id="just before it"),
        pytest.param(11, 12, False, id="at its end"),
        pytest.param(40, 12, True, id="beyond its end: the topic was made anew"),
    ],
)
def test_a_cursor_that_is_kept_no_more_leaves_a_gap_that_is_told_once(after: int, goes_on: int, gap: bool):
    feed, viewer = fed(range(10, 12), first=10), Viewer("p", after)
    feed.join(viewer)
    feed.add(copy_at(12))
    taken = viewer.take(0)
    assert (next(copy.offset for copy in taken.copies), taken.gap) == (max(goes_on, 10), gap)
    assert not viewer.take(0).gap


def test_a_reader_that_begins_again_shows_nothing_twice():
    feed, viewer = fed(range(3)), Viewer("p", -1)
    feed.join(viewer)
    assert seen(viewer) == [0, 1, 2]
    feed.begin(0, 4)
    for offset in range(4):
        feed.add(copy_at(offset))
    assert seen(viewer) == [3]


def test_a_copy_still_on_its_way_from_before_the_beginning_is_passed_over():
    feed, viewer = fed([], first=7), Viewer("p")
    feed.join(viewer)
    feed.add(copy_at(3))
    feed.add(copy_at(7))
    assert seen(viewer) == [7]


def test_who_takes_nothing_loses_the_oldest_and_is_told_how_many():
    feed, slow, quick = fed([]), Viewer("p"), Viewer("p")
    feed.join(slow)
    feed.join(quick)
    taken = []
    for offset in range(WAITING + 30):
        feed.add(copy_at(offset))
        taken += seen(quick)
    late = slow.take(0)
    assert taken == list(range(WAITING + 30))
    assert (late.missed, [copy.offset for copy in late.copies]) == (30, list(range(30, WAITING + 30)))


def test_a_topics_feed_keeps_only_the_newest():
    feed, viewer = fed(range(KEPT + 10)), Viewer("p", 3)
    feed.join(viewer)
    taken = viewer.take(0)
    assert taken.gap
    assert taken.copies[-1].offset == KEPT + 9


@given(st.lists(st.integers(0, 40), max_size=60))
def test_the_newest_never_hold_more_than_they_may_and_lose_at_the_old_end(sizes: list[int]):
    newest = Newest(5, 60)
    gone = sum(newest.add(copy_at(offset, raw=b"x" * size)) for offset, size in enumerate(sizes))
    kept = newest.take()
    assert [copy.offset for copy in kept] == list(range(gone, len(sizes)))
    assert len(kept) <= 5
    assert sum(len(copy.body) for copy in kept) <= 60 or len(kept) == 1


def test_a_pace_lets_a_burst_pass_and_then_so_many_a_second():
    pace = Pace(per_s=8, burst=3, now_s=0.0)
    assert [pace.lets(0.0) for _ in range(4)] == [True, True, True, False]
    assert sum(pace.lets(now / 128) for now in range(1, 257)) == 16


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("", True),
        ("body.total > 100", True),
        ("body.total > 1000", False),
        ("body.colour == 'red'", None),
        ("meta.node == 'normalize' && meta.step == 'here'", True),
        ("meta.source == 'till'", False),
        ("body.total", None),
    ],
)
def test_a_condition_says_yes_no_or_nothing(text: str, verdict: bool | None):
    assert TailFilter(text).passes([copy_at(1, {"total": 250})]) == [verdict]


def test_a_body_that_is_no_json_can_be_judged_by_what_else_is_known():
    assert TailFilter("meta.step == 'here'").passes([copy_at(1, raw=b"\xff")]) == [True]
    assert TailFilter("body.a == 1").passes([copy_at(1, raw=b"\xff")]) == [None]


def test_what_is_no_condition_is_refused_with_its_place():
    with pytest.raises(FilterRefusedError, match="line 1, column 1"):
        TailFilter("payload.total > 1").check()


@pytest.mark.parametrize(
    ("text", "cursor"),
    [
        ("2-17", Cursor(2, 17)),
        (str(Cursor(1, 0)), Cursor(1, 0)),
        ("", None),
        ("2", None),
        ("-1-2", None),
        ("1-x", None),
    ],
)
def test_a_cursor_is_read_as_it_is_written_and_anything_else_is_none(text: str, cursor: Cursor | None):
    assert parse_cursor(text) == cursor
