"""What open windows say so far: told for every key that a batch has changed, and nothing for what is over."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.jobs.slots import Recent, Slot
from dataplane.plan.panes import SECOND_US, Compiled, Panes
from dataplane.plan.taps import key_digest, key_of, key_values, pane_place
from tests.unit.plan.test_panes import TAPPING, MemoryMap, said, sessions, tap_of, tumbling, window

events = st.lists(st.tuples(st.integers(0, 60), st.integers(-9, 9)), min_size=1, max_size=20)


def current(span: dict[str, Any], log: list[tuple[int, int]], clock_s: int = 0) -> dict[tuple[int, int], Any]:
    """What is said, by (start, end) in seconds, when nothing but what the clock allows has closed."""
    compiled, panes = Compiled(window(**span)), Panes()
    for at_s, value in log:
        compiled.take(panes, at_s * SECOND_US, [1, value, value, value, value, value])
    compiled.close(panes, clock_s * SECOND_US)
    return {(o.start_us // SECOND_US, o.end_us // SECOND_US): o.values for o in compiled.current(panes)}


@given(events)
def test_open_windows_say_what_a_recomputation_over_what_came_says(log: list[tuple[int, int]]):
    assert current({"kind": "tumbling", "size_s": 10}, log) == tumbling(10, 10, log)
    assert current({"kind": "sliding", "size_s": 20, "every_s": 5}, log) == tumbling(20, 5, log)
    assert current({"kind": "session", "gap_s": 7}, log) == sessions(7, log)


@given(events, st.integers(0, 80))
def test_a_running_one_says_all_that_came_whatever_was_told_before(log: list[tuple[int, int]], clock_s: int):
    ((_, values),) = current({"kind": "running", "every_s": 10}, log, clock_s).items()
    assert values == said([value for _, value in log])


def slot_of(known: dict[bytes, bytes]) -> Slot:
    return Slot(MemoryMap(known), Recent(), 0, 0)


def test_each_changed_key_is_told_once_and_one_that_is_over_is_told_as_gone():
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


def test_who_asks_finds_the_key_by_pipe_window_and_values_alone():
    tap = tap_of(1, 5, "a", 7)
    assert key_digest(tap.pipe, "w", TAPPING.definition, key_values(["a"])) == key_of(tap)


@pytest.mark.parametrize("partitions", [1, 4])
def test_keys_are_spread_over_the_partitions(partitions: int):
    places = {pane_place(key_of(tap_of(1, 5, f"shop {number}", 7)), partitions) for number in range(200)}
    assert places == set(range(partitions))
