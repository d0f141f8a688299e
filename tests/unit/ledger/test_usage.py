"""Dividing what was spent: to the last unit, by weight, and what no pipe's work took stays apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.ledger.usage import NOBODY, PipeUsage, Spent, Usage, divide, spent

weights = st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.integers(0, 10**12), max_size=12)
totals = st.integers(0, 10**13)


@given(totals, weights)
def test_the_parts_are_the_whole_and_none_is_a_unit_off_its_share(total: int, weights: dict[str, int]):
    parts, whole = divide(total, weights), sum(weights.values())
    if not whole:
        assert parts == {}
        return
    assert sum(parts.values()) == total
    assert all(abs(parts[name] * whole - total * weight) < whole for name, weight in weights.items())


@given(totals, weights, st.randoms(use_true_random=False))
def test_the_order_in_which_pipes_are_told_changes_nothing(total: int, weights: dict[str, int], rng: object):
    names = list(weights)
    rng.shuffle(names)  # type: ignore[attr-defined]
    assert divide(total, {name: weights[name] for name in names}) == divide(total, weights)


@given(totals, st.integers(0, 10**12), st.integers(1, 10**12))
def test_more_work_never_costs_less(total: int, one: int, more: int):
    parts = divide(total, {"a": one, "b": one + more})
    assert parts["a"] <= parts["b"]


@pytest.mark.parametrize(
    ("total", "weights", "parts"),
    [
        pytest.param(10, {"a": 1, "b": 1, "c": 1}, {"a": 4, "b": 3, "c": 3}, id="what is left goes by name if all tie"),
        pytest.param(10, {"a": 1, "b": 2}, {"a": 3, "b": 7}, id="to the largest remainder"),
        pytest.param(7, {"a": 0, "b": 5}, {"a": 0, "b": 7}, id="no work costs nothing"),
        pytest.param(1, {"a": 1, "b": 1}, {"a": 1, "b": 0}, id="less than there are pipes"),
        pytest.param(0, {"a": 3}, {"a": 0}, id="nothing to divide"),
        pytest.param(9, {}, {}, id="nobody worked"),
    ],
)
def test_how_a_total_is_divided(total: int, weights: dict[str, int], parts: dict[str, int]):
    assert divide(total, weights) == parts


pipes = st.lists(
    st.builds(PipeUsage, st.sampled_from(["p1", "p2", "p3"]), st.integers(0, 99), st.integers(0, 9_999), totals),
    max_size=3,
    unique_by=lambda one: one.pipe,
)


@given(st.builds(Usage, totals, totals, pipes))
def test_what_pipes_and_nobody_spent_is_what_the_process_spent(usage: Usage):
    parts = spent(usage)
    assert sum(part.cpu_us for part in parts.values()) == usage.busy_us + usage.idle_us
    assert parts[NOBODY].cpu_us >= usage.idle_us
    assert {pipe for pipe in parts if pipe} == {one.pipe for one in usage.pipes}


def test_what_is_idle_is_nobodys_and_what_is_busy_is_divided():
    usage = Usage(900, 100, [PipeUsage("p1", 3, 30, 2), PipeUsage("p2", 5, 50, 1)])
    assert spent(usage) == {"p1": Spent(3, 30, 600), "p2": Spent(5, 50, 300), NOBODY: Spent(0, 0, 100)}


def test_what_was_busy_for_no_pipe_is_nobodys():
    assert spent(Usage(900, 100, [])) == {NOBODY: Spent(0, 0, 1_000)}
