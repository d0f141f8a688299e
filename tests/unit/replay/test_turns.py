"""Turns of the runs of a cell."""

from hypothesis import given
from hypothesis import strategies as st

from dataplane.replay.turns import WaitingRun, behind_others, next_turn

RUNS = st.lists(
    st.builds(
        WaitingRun,
        st.text("abc", min_size=1),
        st.sampled_from(["t1", "t2", "t3"]),
        st.integers(0, 3),
        st.floats(0, 10),
        st.floats(0, 10),
    ),
    unique_by=lambda one: one.run,
)


@given(RUNS, st.floats(0, 10))
def test_turn_is_of_the_first_run_of_its_group_and_due(runs: list[WaitingRun], now_s: float):
    turn = next_turn(runs, now_s)
    behind = behind_others(runs)
    first = [one for one in runs if one.run not in behind]
    assert len({one.group for one in first}) == len(first) == len({one.group for one in runs})
    due = [one for one in first if one.due_s <= now_s]
    assert bool(turn) == bool(due)
    if turn:
        (taken,) = (one for one in due if one.run == turn)
        assert all(taken.last_s <= one.last_s for one in due)
    for one in runs:
        if one.run in behind:
            (ahead,) = (other for other in first if other.group == one.group)
            assert (ahead.order, ahead.run) < (one.order, one.run)
            assert behind[one.run] == ahead.run


def test_groups_take_turns_so_that_a_slow_run_delays_no_other():
    slow, other = WaitingRun("a", "t1", 1, 50.0, 10.0), WaitingRun("b", "t2", 2, 0.0, 20.0)
    assert next_turn([slow, other], 30.0) == "b"
    assert next_turn([slow, other], 60.0) == "a"
