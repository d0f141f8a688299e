"""Live tail: each viewer gets the copies of its pipe once, from its cursor on, and delays no other."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgmt.sandbox import FilterRefusedError
from mgmt.tail import TailCursor, TailFilter, parse_cursor
from mgmt.tail.copies import RecentCopies
from mgmt.tail.stream import TailRateLimit
from mgmt.tail.viewer import KEPT, WAITING, TailChunk, TailTopic, TailViewer
from tests.support.copies import copy_at


def fed(offsets: Iterable[int], first: int = 0) -> TailTopic:
    feed = TailTopic()
    feed.begin(first, first)
    for offset in offsets:
        feed.add(copy_at(offset))
    return feed


def seen(viewer: TailViewer) -> list[int]:
    return [copy.offset for copy in viewer.take(0).copies]


def test_new_viewer_sees_no_older_copies():
    feed, viewer = fed(range(5)), TailViewer("p")
    feed.join(viewer)
    feed.add(copy_at(5))
    assert seen(viewer) == [5]


def test_viewer_with_a_cursor_sees_missed_copies_and_then_new_ones():
    feed, viewer = fed(range(5)), TailViewer("p", 2)
    feed.join(viewer)
    feed.add(copy_at(5))
    assert seen(viewer) == [3, 4, 5]
    assert viewer.take(0) == TailChunk([], 5, 0, False)


def test_copies_of_another_pipe_move_the_cursor_and_are_not_shown():
    feed, viewer = fed(range(2)), TailViewer("q", 1)
    feed.join(viewer)
    feed.add(copy_at(2))
    assert viewer.take(0) == TailChunk([], 2, 0, False)


@pytest.mark.parametrize(
    ("after", "goes_on", "gap"),
    [
        pytest.param(8, 9, True, id="older than what is kept"),
        pytest.param(9, 10, False, id="just before it"),
        pytest.param(11, 12, False, id="at its end"),
        pytest.param(40, 12, True, id="beyond its end: the topic was recreated"),
    ],
)
def test_expired_cursor_leaves_a_gap_that_is_reported_once(after: int, goes_on: int, gap: bool):
    feed, viewer = fed(range(10, 12), first=10), TailViewer("p", after)
    feed.join(viewer)
    feed.add(copy_at(12))
    taken = viewer.take(0)
    assert (next(copy.offset for copy in taken.copies), taken.gap) == (max(goes_on, 10), gap)
    assert not viewer.take(0).gap


def test_restarted_reader_shows_no_copy_twice():
    feed, viewer = fed(range(3)), TailViewer("p", -1)
    feed.join(viewer)
    assert seen(viewer) == [0, 1, 2]
    feed.begin(0, 4)
    for offset in range(4):
        feed.add(copy_at(offset))
    assert seen(viewer) == [3]


def test_copy_from_before_the_start_is_skipped():
    feed, viewer = fed([], first=7), TailViewer("p")
    feed.join(viewer)
    feed.add(copy_at(3))
    feed.add(copy_at(7))
    assert seen(viewer) == [7]


def test_slow_viewer_loses_the_oldest_copies_and_learns_their_number():
    feed, slow, quick = fed([]), TailViewer("p"), TailViewer("p")
    feed.join(slow)
    feed.join(quick)
    taken = []
    for offset in range(WAITING + 30):
        feed.add(copy_at(offset))
        taken += seen(quick)
    late = slow.take(0)
    assert taken == list(range(WAITING + 30))
    assert (late.missed, [copy.offset for copy in late.copies]) == (30, list(range(30, WAITING + 30)))


def test_feed_of_a_topic_keeps_only_the_newest_copies():
    feed, viewer = fed(range(KEPT + 10)), TailViewer("p", 3)
    feed.join(viewer)
    taken = viewer.take(0)
    assert taken.gap
    assert taken.copies[-1].offset == KEPT + 9


@given(st.lists(st.integers(0, 40), max_size=60))
def test_recent_copies_stay_within_their_limits_and_drop_the_oldest(sizes: list[int]):
    newest = RecentCopies(5, 60)
    gone = sum(newest.add(copy_at(offset, raw=b"x" * size)) for offset, size in enumerate(sizes))
    kept = newest.take()
    assert [copy.offset for copy in kept] == list(range(gone, len(sizes)))
    assert len(kept) <= 5
    assert sum(len(copy.body) for copy in kept) <= 60 or len(kept) == 1


def test_rate_limit_passes_a_burst_and_then_a_fixed_rate():
    pace = TailRateLimit(per_s=8, burst=3, now_s=0.0)
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
def test_filter_returns_true_false_or_none(text: str, verdict: bool | None):
    assert TailFilter(text).passes([copy_at(1, {"total": 250})]) == [verdict]


def test_body_that_is_no_json_can_be_filtered_by_its_metadata():
    assert TailFilter("meta.step == 'here'").passes([copy_at(1, raw=b"\xff")]) == [True]
    assert TailFilter("body.a == 1").passes([copy_at(1, raw=b"\xff")]) == [None]


def test_invalid_filter_is_refused_with_line_and_column():
    with pytest.raises(FilterRefusedError, match="line 1, column 1"):
        TailFilter("payload.total > 1").check()


@pytest.mark.parametrize(
    ("text", "cursor"),
    [
        ("2-17", TailCursor(2, 17)),
        (str(TailCursor(1, 0)), TailCursor(1, 0)),
        ("", None),
        ("2", None),
        ("-1-2", None),
        ("1-x", None),
    ],
)
def test_cursor_is_read_as_it_is_written_and_anything_else_is_none(text: str, cursor: TailCursor | None):
    assert parse_cursor(text) == cursor
