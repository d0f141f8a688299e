"""Deficit round robin: each busy tenant gets its share of the cost, whatever one item costs."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.runtime.lanes.fair import MOST_DEBT, FairQueue


def spent_by(costs: dict[str, float], rounds: int, weights: dict[str, float] | None = None) -> Counter[str]:
    """Return the cost spent by each tenant if all always have work; each item of a tenant costs the same."""
    queue = FairQueue[str](2.0, lambda tenant: (weights or {}).get(tenant, 1.0))
    for tenant in costs:
        queue.add(tenant, f"flow of {tenant}")
    spent: Counter[str] = Counter()
    for _ in range(rounds):
        found = queue.next()
        assert found is not None
        tenant = found[0].removeprefix("flow of ")
        spent[tenant] += costs[tenant]  # type: ignore[assignment]
        queue.spent(costs[tenant], has_more=True)
    return spent


@given(costs=st.dictionaries(st.sampled_from("abcdef"), st.floats(0.01, 30.0), min_size=2))
def test_tenants_spend_equally_whatever_their_items_cost(costs: dict[str, float]):
    spent = spent_by(costs, 20_000)
    dearest = max(costs.values()) + 4.0
    assert max(spent.values()) - min(spent.values()) <= 2 * dearest


def test_tenant_with_twice_the_weight_spends_twice_as_much():
    spent = spent_by({"a": 1.0, "b": 1.0}, 3_000, {"a": 2.0})
    assert spent["a"] / spent["b"] == pytest.approx(2, rel=0.05)


def test_flows_of_a_tenant_alternate_and_do_not_increase_its_share():
    queue = FairQueue[str](1.0)
    for number in range(9):
        queue.add("many", f"many-{number}")
    queue.add("one", "one-0")
    seen: Counter[str] = Counter()
    for _ in range(900):
        found = queue.next()
        assert found is not None
        seen[found[0]] += 1
        queue.spent(1.0, has_more=True)
    assert seen["one-0"] == pytest.approx(450, abs=5)
    assert all(seen[f"many-{number}"] == pytest.approx(50, abs=3) for number in range(9))


def test_idle_tenant_accumulates_no_credit():
    queue = FairQueue[str](1.0)
    queue.add("busy", "busy")
    for _ in range(100):
        queue.next()
        queue.spent(1.0, has_more=True)
    queue.add("back", "back")
    first = []
    for _ in range(10):
        found = queue.next()
        assert found is not None
        first.append(found[0])
        queue.spent(1.0, has_more=True)
    assert first.count("back") == 5


def test_expensive_item_delays_its_tenant_for_a_bounded_time_only():
    queue = FairQueue[str](1.0)
    queue.add("dear", "dear")
    queue.add("cheap", "cheap")
    queue.next()
    queue.spent(1_000_000.0, has_more=True)
    turns = 0
    while (found := queue.next()) is not None and found[0] == "cheap":
        queue.spent(1.0, has_more=True)
        turns += 1
    assert turns <= MOST_DEBT + 2


def test_empty_queue_returns_no_tenant():
    queue = FairQueue[str](1.0)
    queue.add("t", "one")
    queue.add("t", "two")
    queue.add("u", "three")
    queue.remove("u", "three")
    assert (len(queue), queue.tenants) == (2, 1)
    for _ in range(2):
        assert queue.next() is not None
        queue.spent(1.0, has_more=False)
    assert queue.next() is None
    assert len(queue) == 0
