"""Capacity test: the search finds the rate that a cell can handle, and each step names its bottleneck."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from controlplane.autoscaler.figures import GroupRates
from controlplane.capacity_test.judge import GROUPS, RateStep, bottleneck_of, capacity_results, late_groups, outcome_of
from controlplane.capacity_test.search import Outcome, SearchBounds, SearchResult, SearchStep, found_by, next_rate

BOUNDS = SearchBounds()


def searched(judge: Callable[[float], Outcome], bounds: SearchBounds = BOUNDS) -> list[SearchStep]:
    tried: list[SearchStep] = []
    while (rate := next_rate(tried, bounds)) is not None:
        tried.append(SearchStep(rate, judge(rate)))
    return tried


def limit_of(takes: float) -> Callable[[float], Outcome]:
    return lambda rate: "held" if rate <= takes else "behind"


class TestTheSearch:
    @given(takes=st.floats(20, 45_000))
    def test_search_ends_close_below_the_capacity(self, takes: float):
        tried = searched(limit_of(takes))
        found = found_by(tried)
        assert not found.at_least
        assert takes / BOUNDS.close <= found.rate * 1.0001
        assert found.rate <= takes
        assert len(tried) <= BOUNDS.steps

    @given(
        outcomes=st.lists(st.sampled_from(["held", "behind", "sender"]), min_size=30, max_size=30),
        most=st.floats(50, 50_000),
    )
    def test_search_ends_within_its_bounds_for_any_outcomes(self, outcomes: list[Outcome], most: float):
        answers = iter(outcomes)
        bounds = SearchBounds(most=most)
        tried = searched(lambda _rate: next(answers), bounds)
        assert len(tried) <= bounds.steps
        assert all(bounds.least <= step.rate <= most for step in tried)

    def test_search_doubles_then_bisects_and_repeats_each_rate_that_was_too_high(self):
        rates = [round(step.rate) for step in searched(limit_of(1_000))]
        assert rates == [200, 400, 800, 1_600, 1_600, 1_131, 1_131, 951, 1_037, 1_037]

    def test_single_failure_is_not_the_limit(self):
        fell = iter([True])
        tried = searched(lambda rate: "behind" if rate == 400 and next(fell, False) else limit_of(3_000)(rate))
        assert [step.outcome for step in tried[:3]] == ["held", "behind", "held"]
        assert found_by(tried).rate > 2_600

    def test_rate_that_the_sender_reached_is_a_lower_bound(self):
        tried = searched(lambda rate: "held" if rate < 1_000 else "sender")
        assert tried[-1].outcome == "sender"
        assert found_by([*tried[:-1], SearchStep(1_300, "sender")]) == SearchResult(1_300, at_least=True)

    def test_highest_allowed_rate_is_a_lower_bound(self):
        tried = searched(limit_of(1e9), SearchBounds(most=700))
        assert [step.rate for step in tried] == [200, 400, 700]
        assert found_by(tried) == SearchResult(700, at_least=True)

    def test_search_gives_up_at_the_lowest_rate_when_no_rate_is_handled(self):
        tried = searched(lambda _rate: "behind")
        assert found_by(tried) == SearchResult(0, at_least=False)
        assert tried[-1].rate >= BOUNDS.least


def figure(**changes: Any) -> GroupRates:
    fields = {"at_s": 8.0, "span_s": 8.0, "lanes": 1, "cpu": 0.4, "came": 1_000, "settled": 1_000, "backlog": 100}
    return GroupRates(**fields | changes)


def step(groups: dict[Any, dict[str, Any]] | None = None, **changes: Any) -> RateStep:
    fields: dict[str, Any] = {
        "wanted": 1_000.0,
        "acked": 1_000.0,
        "refused": 0,
        "ack_p95_us": 5_000,
        "sender_cpu": 0.1,
        "receiver_cpu": 0.1,
        "machine": 0.5,
        "cores": 4,
        "groups": {group: figure(**(groups or {}).get(group, {})) for group in GROUPS},
    }
    return RateStep(**fields | changes)


BEHIND = {"settled": 800, "backlog": 2_000}


@pytest.mark.parametrize(
    ("found", "outcome", "where", "says"),
    [
        pytest.param(step(), "held", "none", "none up to 1000 events", id="all is well"),
        pytest.param(
            step({"process": BEHIND | {"cpu": 0.97}}), "behind", "process", "CPU of process", id="a lane at its ceiling"
        ),
        pytest.param(
            step({"process": BEHIND | {"cpu": 0.97, "lanes": 2}}), "behind", "waiting", "each process lane uses 0.48",
            id="two lanes with the CPU of one wait for something else",
        ),
        pytest.param(
            step({"transmit": BEHIND}, receiver_cpu=0.95), "behind", "destination", "0.95 of a core",
            id="the receiver is full",
        ),
        pytest.param(
            step({"transmit": BEHIND}), "behind", "waiting", "transmit waits for something", id="transmit waits"
        ),
        pytest.param(
            step({"process": BEHIND, "transmit": BEHIND}, machine=0.99), "behind", "machine", "4 cores are 99% busy",
            id="the machine is full before any lane is",
        ),
        pytest.param(
            step({"process": {"settled": 999, "backlog": 1_500}}), "behind", "waiting", "process",
            id="what waits is more than a second's worth",
        ),
        pytest.param(
            step({"ingest": {"cpu": 0.9}}, refused=3), "behind", "ingest", "ingest replica", id="ingest refuses"
        ),
        pytest.param(step(ack_p95_us=2_000_000), "behind", "waiting", "ingest waits", id="ACKs are slow"),
        pytest.param(step(acked=900), "behind", "waiting", "ingest waits", id="ACKs hold the sender up"),
        pytest.param(
            step(acked=900, sender_cpu=0.96), "sender", "sender", "sends 900 events per second with 0.96",
            id="the sender cannot send more",
        ),
    ],
)  # fmt: skip
def test_step_reports_its_outcome_and_its_bottleneck(found: RateStep, outcome: str, where: str, says: str):
    assert outcome_of(found) == outcome
    bottleneck = bottleneck_of(found)
    assert bottleneck.where == where
    assert says in bottleneck.words


def test_late_groups_are_in_the_order_of_the_path():
    assert late_groups(step({"transmit": BEHIND, "process": BEHIND}, refused=1)) == list(GROUPS)


def test_only_the_group_at_its_ceiling_has_an_exact_rate():
    best = step({"process": {"cpu": 1.6, "lanes": 2, "settled": 2_000}})
    limit = bottleneck_of(step({"process": BEHIND | {"cpu": 0.97}}))
    found = {one.group: one for one in capacity_results(best, limit)}
    assert {group: one.at_least for group, one in found.items()} == {"ingest": True, "process": False, "transmit": True}
    assert (found["process"].per_s, found["process"].units, round(found["process"].cpu_us)) == (1_000, 2, 800)


def test_group_without_figures_is_not_rated():
    groups = dict(step().groups) | {"ingest": figure(lanes=0)}
    assert [one.group for one in capacity_results(replace(step(), groups=groups), bottleneck_of(step()))] == [
        "process",
        "transmit",
    ]
