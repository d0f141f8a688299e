"""Current values of open windows: published for each key that a batch changed, and removed once closed."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.jobs.slots import RecentEvents, SlotBatch
from dataplane.plan.panes import SECOND_US, CompiledWindow, KeyPanes
from dataplane.plan.taps import digest_partition, key_digest, key_of, key_values
from tests.unit.plan.test_panes import TAPPING, MemoryMap, said, sessions, tap_of, tumbling, window

events = st.lists(st.tuples(st.integers(0, 60), st.integers(-9, 9)), min_size=1, max_size=20)


def current(span: dict[str, Any], log: list[tuple[int, int]], clock_s: int = 0) -> dict[tuple[int, int], Any]:
    """Return the current values by (start, end) in seconds, after closing what the clock allows."""
    compiled, panes = CompiledWindow(window(**span)), KeyPanes()
    for at_s, value in log:
        compiled.take(panes, at_s * SECOND_US, [1, value, value, value, value, value])
    compiled.close(panes, clock_s * SECOND_US)
    return {(o.start_us // SECOND_US, o.end_us // SECOND_US): o.values for o in compiled.current(panes)}


@given(events)
def test_open_windows_equal_a_recomputation_of_the_events_so_far(log: list[tuple[int, int]]):
    assert current({"kind": "tumbling", "size_s": 10}, log) == tumbling(10, 10, log)
    assert current({"kind": "sliding", "size_s": 20, "every_s": 5}, log) == tumbling(20, 5, log)
    assert current({"kind": "session", "gap_s": 7}, log) == sessions(7, log)


@given(events, st.integers(0, 80))
def test_running_window_includes_all_events_whatever_was_published_before(log: list[tuple[int, int]], clock_s: int):
    ((_, values),) = current({"kind": "running", "every_s": 10}, log, clock_s).items()
    assert values == said([value for _, value in log])


def slot_of(known: dict[bytes, bytes]) -> SlotBatch:
    return SlotBatch(MemoryMap(known), RecentEvents(), 0, 0)


def test_each_changed_key_is_published_once_and_a_closed_one_as_a_tombstone():
    slot = slot_of({})
    for number, shop in enumerate("aab"):
        slot.take(msgspec.msgpack.encode(tap_of(number, 5, shop, number)))
    told = {one.key: msgspec.json.decode(one.body or b"null") for one in slot.current()}
    slot.store()
    assert sorted((body["by"]["shop"], body["open"][0]["events"], body["as_of"]) for body in told.values()) == [
        ("a", 2, None),
        ("b", 1, None),
    ]
    after = slot_of(slot._keys.known)
    after.due_us = slot.due_us
    assert list(after.current()) == []
    assert len(list(after.tick(1_000 * SECOND_US))) == 2
    assert {one.key: one.body for one in after.current()} == dict.fromkeys(told)


def test_reader_can_compute_the_key_from_pipe_window_and_values_alone():
    tap = tap_of(1, 5, "a", 7)
    assert key_digest(tap.pipe, "w", TAPPING.definition, key_values(["a"])) == key_of(tap)


@pytest.mark.parametrize("partitions", [1, 4])
def test_keys_are_spread_over_the_partitions(partitions: int):
    places = {digest_partition(key_of(tap_of(1, 5, f"shop {number}", 7)), partitions) for number in range(200)}
    assert places == set(range(partitions))
