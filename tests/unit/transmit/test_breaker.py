"""The breaker opens on a bad window, is probed later, and neither trips on few failures nor flaps."""

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from dataplane.transmit.policy.breaker import (
    CALM_S,
    FIRST_OPEN_S,
    GOOD_PROBES,
    JITTER,
    MIN_VOLUME,
    OPEN_CAP_S,
    PROBER_GRACE_S,
    PROBES,
    SLICE_S,
    UNLIMITED,
    Breaker,
)


def opened(now_s: float = 0.0) -> Breaker:
    breaker = Breaker(now_s)
    for _ in range(MIN_VOLUME):
        breaker.failed(now_s, 0.0)
    return breaker


def fed(*sends: tuple[float, bool]) -> Breaker:
    breaker = Breaker(0.0)
    for now_s, well in sends:
        if well:
            breaker.succeeded(now_s)
        else:
            breaker.failed(now_s, 0.0)
    return breaker


@pytest.mark.parametrize(
    ("sends", "state"),
    [
        pytest.param([(0.0, False)] * (MIN_VOLUME - 1), "closed", id="too few to say"),
        pytest.param([(0.0, False)] * MIN_VOLUME, "open", id="all of them bad"),
        pytest.param([(0.0, True)] * 11 + [(1.0, False)] * 10, "closed", id="less than half"),
        pytest.param([(0.0, True)] * 10 + [(1.0, False)] * 10, "open", id="half"),
        pytest.param([(0.0, True)] * 100 + [(2.5 * SLICE_S, False)] * 10, "open", id="a good past is forgotten"),
        pytest.param([(0.0, False)] * 9 + [(2.5 * SLICE_S, False)], "closed", id="a bad past too"),
        pytest.param([(0.0, False)] * 6 + [(1.5 * SLICE_S, False)] * 4, "open", id="over two slices"),
    ],
)
def test_breaker_opens_when_half_of_a_window_fails(sends: list[tuple[float, bool]], state: str):
    assert fed(*sends).state == state


def test_open_breaker_sends_nothing_and_the_prober_probes_first():
    breaker = opened()
    assert breaker.allowance(FIRST_OPEN_S - 0.1, prober=True) == 0
    assert breaker.allowance(FIRST_OPEN_S + 0.1, prober=False) == 0
    assert breaker.allowance(FIRST_OPEN_S + 0.1, prober=True) == PROBES
    assert breaker.state == "half-open"


def test_other_lane_probes_when_the_prober_is_silent():
    assert opened().allowance(FIRST_OPEN_S + PROBER_GRACE_S + 0.1, prober=False) == PROBES


def test_good_probes_close_the_breaker_and_a_bad_one_opens_it_for_longer():
    breaker, at_s = opened(), FIRST_OPEN_S + 1
    breaker.allowance(at_s, prober=True)
    breaker.failed(at_s, 0.0)
    assert (breaker.state, breaker.period_s) == ("open", 2 * FIRST_OPEN_S)
    at_s = breaker.until_s
    breaker.allowance(at_s, prober=True)
    for _ in range(GOOD_PROBES):
        breaker.succeeded(at_s)
    assert (breaker.state, breaker.allowance(at_s, prober=False)) == ("closed", UNLIMITED)
    assert (breaker.until_s, breaker.period_s) == (0, 0), "messages set aside from now on do not wait for it"


def test_late_response_does_not_close_the_breaker():
    breaker = opened()
    for _ in range(100):
        breaker.succeeded(1.0)
    assert breaker.state == "open"


def test_opening_after_a_calm_time_is_short_again():
    breaker = opened()
    breaker.close(10.0)
    for _ in range(MIN_VOLUME):
        breaker.failed(10.0 + CALM_S + 1, 0.0)
    assert breaker.period_s == FIRST_OPEN_S


@pytest.mark.parametrize(("until_s", "adopted_s"), [(7.0, 7.0), (10_000.0, OPEN_CAP_S)])
def test_opening_by_another_lane_is_adopted_for_a_limited_time(until_s: float, adopted_s: float):
    breaker = Breaker(0.0)
    breaker.adopt_open(0.0, until_s)
    assert (breaker.state, breaker.until_s) == ("open", adopted_s)


class BreakerMachine(RuleBasedStateMachine):
    """Responses, time and signals in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 100.0
        self.breaker = Breaker(self.now_s)
        self.bad: list[float] = []
        self.openings: list[float] = []

    def watched(self, change: Callable[[], None]) -> None:
        """Run `change`, record an opening of the breaker, and check what holds for every opening."""
        before = self.breaker.state
        change()
        if before != "open" and self.breaker.state == "open":
            if self.openings:
                assert self.now_s - self.openings[-1] >= FIRST_OPEN_S, "it flaps"
            self.openings.append(self.now_s)

    @rule(seconds=st.floats(0.001, 40))
    def time_passes(self, seconds: float) -> None:
        self.now_s += seconds

    @rule(count=st.integers(1, 12))
    def answers_are_good(self, count: int) -> None:
        for _ in range(count):
            self.breaker.succeeded(self.now_s)

    @rule(count=st.integers(1, 12), chance=st.floats(0, 1))
    def answers_are_bad(self, count: int, chance: float) -> None:
        for _ in range(count):
            before = self.breaker.state
            self.bad.append(self.now_s)
            self.watched(lambda: self.breaker.failed(self.now_s, chance))
            if before == "closed" and self.breaker.state == "open":
                recent = [at for at in self.bad if self.now_s - at <= 2 * SLICE_S + SLICE_S]
                assert len(recent) >= MIN_VOLUME / 2, "opened on too few failures"

    @rule(prober=st.booleans())
    def allowance_is_requested(self, prober: bool) -> None:
        allowance = self.breaker.allowance(self.now_s, prober=prober)
        if self.breaker.state == "closed":
            assert allowance == UNLIMITED
        elif allowance:
            assert (self.breaker.state, allowance) == ("half-open", PROBES)
            assert self.now_s >= self.breaker.until_s

    @rule(seconds=st.floats(-100, 1_000))
    def another_lane_opened(self, seconds: float) -> None:
        state = self.breaker.state
        self.breaker.adopt_open(self.now_s, self.now_s + seconds)
        if state == "closed":
            self.openings.clear()  # limited by the rules of the other lane

    @rule()
    def another_lane_closed(self) -> None:
        self.breaker.close(self.now_s)
        self.openings.clear()

    @invariant()
    def it_is_never_open_for_longer_than_the_cap(self) -> None:
        if self.breaker.state == "open":
            assert self.breaker.until_s - self.now_s <= OPEN_CAP_S * (1 + JITTER)

    @invariant()
    def it_always_comes_back(self) -> None:
        if self.breaker.state != "closed":
            assert self.breaker.until_s < float("inf")


TestBreakerMachine = BreakerMachine.TestCase
TestBreakerMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
