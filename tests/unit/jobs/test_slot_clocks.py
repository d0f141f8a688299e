"""Clocks of a slot: windows close at the moment that every partition of the taps topic has passed."""

from hypothesis import given
from hypothesis import strategies as st

from dataplane.jobs.slots import SlotClocks

records = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 50)), max_size=40)


@given(records)
def test_slot_passes_a_moment_when_every_partition_has_passed_it(read: list[tuple[int, int]]):
    clocks = SlotClocks(4)
    passed = dict.fromkeys(range(4), 0)
    for partition, clock_us in read:
        passed[partition] = max(passed[partition], clock_us)
        assert clocks.note(partition, clock_us) == min(passed.values())
        clocks = SlotClocks(4, clocks.encode())


def test_clock_of_the_only_partition_needs_no_state():
    assert SlotClocks(1).note(0, 7) == 7


def test_partition_without_a_clock_holds_all_windows_open():
    clocks = SlotClocks(2)
    assert clocks.note(0, 1_000) == 0
    assert clocks.note(1, 900) == 900
