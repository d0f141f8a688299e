"""Usage is divided exactly, by weight; what no pipe used is kept apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.ledger.usage import NO_PIPE, PipeShare, PipeUsage, UsageReport, divide, spent

weights = st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.integers(0, 10**12), max_size=12)
totals = st.integers(0, 10**13)


@given(totals, weights)
def test_parts_add_up_to_the_whole_and_each_is_within_a_unit_of_its_share(total: int, weights: dict[str, int]):
    parts, whole = divide(total, weights), sum(weights.values())
    if not whole:
        assert parts == {}
        return
    assert sum(parts.values()) == total
    assert all(abs(parts[name] * whole - total * weight) < whole for name, weight in weights.items())


@given(totals, weights, st.randoms(use_true_random=False))
def test_order_of_the_pipes_does_not_change_their_parts(total: int, weights: dict[str, int], rng: object):
    names = list(weights)
    rng.shuffle(names)  # type: ignore[attr-defined]
    assert divide(total, {name: weights[name] for name in names}) == divide(total, weights)


@given(totals, st.integers(0, 10**12), st.integers(1, 10**12))
def test_pipe_with_more_work_never_gets_a_smaller_part(total: int, one: int, more: int):
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
def test_total_is_divided_by_largest_remainder(total: int, weights: dict[str, int], parts: dict[str, int]):
    assert divide(total, weights) == parts


pipes = st.lists(
    st.builds(PipeUsage, st.sampled_from(["p1", "p2", "p3"]), st.integers(0, 99), st.integers(0, 9_999), totals),
    max_size=3,
    unique_by=lambda one: one.pipe,
)


@given(st.builds(UsageReport, totals, totals, pipes))
def test_usage_of_pipes_and_of_nobody_adds_up_to_that_of_the_process(usage: UsageReport):
    parts = spent(usage)
    assert sum(part.cpu_us for part in parts.values()) == usage.busy_us + usage.idle_us
    assert parts[NO_PIPE].cpu_us >= usage.idle_us
    assert {pipe for pipe in parts if pipe} == {one.pipe for one in usage.pipes}


def test_idle_time_belongs_to_nobody_and_busy_time_is_divided():
    usage = UsageReport(900, 100, [PipeUsage("p1", 3, 30, 2), PipeUsage("p2", 5, 50, 1)])
    assert spent(usage) == {"p1": PipeShare(3, 30, 600), "p2": PipeShare(5, 50, 300), NO_PIPE: PipeShare(0, 0, 100)}


def test_busy_time_without_pipes_belongs_to_nobody():
    assert spent(UsageReport(900, 100, [])) == {NO_PIPE: PipeShare(0, 0, 1_000)}
