"""The ack window: adding many messages at once is the same as adding each of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.runtime.lanes.window import AckWindow


@given(st.lists(st.lists(st.integers(1, 3), max_size=6), max_size=5), st.data())
def test_messages_added_in_bulk_are_in_the_window_as_if_added_one_by_one(batches: list[list[int]], data: st.DataObject):
    at_once, singly, next_offset = AckWindow(10), AckWindow(10), 10
    for gaps in batches:
        offsets = [next_offset := next_offset + gap for gap in gaps]
        at_once.take_all(offsets, gaps)
        for offset, size in zip(offsets, gaps, strict=True):
            singly.take(offset, size)
        done = data.draw(st.lists(st.integers(10, next_offset), unique=True))
        at_once.settle_all(done)
        for offset in done:
            singly.settle(offset)
        assert [getattr(at_once, name) for name in ("prefix", "unsettled", "span", "bytes", "next_offset")] == [
            getattr(singly, name) for name in ("prefix", "unsettled", "span", "bytes", "next_offset")
        ]


@pytest.mark.parametrize("offsets", [[9], [10, 10], [10, 12, 11]], ids=["taken already", "twice", "falling"])
def test_offsets_that_do_not_increase_are_refused_as_a_whole(offsets: list[int]):
    window = AckWindow(10)
    with pytest.raises(ValueError, match="rise from 10"):
        window.take_all(offsets, [1] * len(offsets))
    assert (window.span, window.bytes, window.next_offset) == (0, 0, 10)
