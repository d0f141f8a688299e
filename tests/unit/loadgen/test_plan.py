"""Plan of a load: what is due when, at a rate and without one."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.plan import Post, SendPlan


def numbers(post: Post | None) -> list[int] | None:
    return post and list(post.numbers)


def begun(plan: SendPlan, now_s: float = 100.0) -> SendPlan:
    plan.begin(now_s)
    return plan


@given(count=st.integers(0, 200), batch=st.integers(1, 30), rate=st.none() | st.floats(1, 1_000))
def test_plan_sends_each_number_once_in_order(count: int, batch: int, rate: float | None):
    plan, now_s = begun(SendPlan(rate, count=count, batch=batch)), 100.0
    sent: list[int] = []
    while not plan.is_over:
        now_s += plan.wait_s(now_s)
        if post := plan.take(now_s):
            sent += post.numbers
    assert sent == list(range(count))
    assert now_s == pytest.approx(100.0 + batch * max(0, math.ceil(count / batch) - 1) / (rate or math.inf))


def test_open_loop_sends_at_its_rate_whether_or_not_responses_arrive():
    plan = begun(SendPlan(10.0, batch=2))
    assert numbers(plan.take(100.0)) == [0, 1]
    assert plan.take(100.1) is None
    assert plan.wait_s(100.1) == pytest.approx(0.1)
    late = plan.take(100.25)
    assert numbers(late) == [2, 3]
    assert late is not None
    assert late.late_s == pytest.approx(0.05)
    assert plan.wait_s(100.25) == pytest.approx(0.15), "a late request does not delay the next one"


def test_closed_loop_is_due_whenever_a_connection_is_free():
    plan = begun(SendPlan(None, count=2))
    assert plan.wait_s(100.0) == 0
    assert [numbers(plan.take(100.0)) for _ in range(3)] == [[0], [1], None]
    assert plan.is_over
    assert plan.wait_s(100.0) == math.inf


@pytest.mark.parametrize(("most_behind_s", "due"), [(math.inf, 51), (1.0, 11)])
def test_load_that_is_late_catches_up_at_most_its_limit(most_behind_s: float, due: int):
    plan = begun(SendPlan(10.0, most_behind_s=most_behind_s))
    assert sum(plan.take(105.0) is not None for _ in range(100)) == due


def test_rate_of_zero_sends_nothing_until_the_rate_is_set():
    plan = begun(SendPlan(0.0))
    assert plan.take(100.0) is None
    assert plan.wait_s(100.0) == math.inf
    assert not plan.is_over
    plan.set_rate(2.0, 110.0)
    assert numbers(plan.take(110.0)) == [0], "the time without a rate is not made up for"
    assert plan.take(110.0) is None


def test_events_are_sent_again_when_they_are_due_and_before_new_ones():
    plan = begun(SendPlan(1.0))
    first = plan.take(100.0)
    assert first is not None
    plan.again(first, 103.0)
    assert numbers(plan.take(102.0)) == [1]
    assert plan.take(103.0) == first


def test_plan_that_has_ended_still_sends_again_unless_repeats_end_too():
    plan = begun(SendPlan(None))
    first = plan.take(100.0)
    assert first is not None
    plan.again(first, 101.0)
    plan.end()
    assert plan.take(100.0) is None
    assert not plan.is_over
    assert plan.wait_s(100.0) == 1.0
    plan.end(repeats=False)
    assert plan.is_over
