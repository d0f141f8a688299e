"""Field shares: independent of writers and their order, and unknown if they could not be observed."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.ledger.fields import FieldCount, FieldCounter, FieldObservation
from mgmt.patterns.blocks import IN_HOUR
from mgmt.patterns.shares import (
    EMPTY,
    FEWEST_EVENTS,
    MOST_KEYS,
    STEPS,
    UNKNOWN,
    FieldKey,
    FieldShares,
    SourceShares,
    key_of,
    merged,
    with_sample,
)

TYPE, VALUE = FieldKey("x", "type", "string").text, FieldKey("x", "value", "DE").text
events = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["DE", "FR", 1, 2.5, None, {"d": True}]))


def seen(*bodies: Any) -> FieldObservation:
    counter = FieldCounter(with_values=True)
    for body in bodies:
        counter.add(body)
    return counter.observation("p", "shop", 0)


@given(st.lists(st.lists(events, max_size=8), max_size=4), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_merged_samples_of_several_writers_are_independent_of_their_order(writers: list[list[Any]], chance: Any):
    samples = [seen(*bodies) for bodies in writers]
    whole = merged(samples)
    chance.shuffle(samples)
    assert merged(samples) == whole
    assert merged([FieldObservation("p", "shop", 0, 0, []), *samples]) == whole
    everything = [body for bodies in writers for body in bodies]
    assert whole.events == len(everything)
    for name in "abc":
        assert whole.counts.get(name, 0) == sum(name in body for body in everything)


@pytest.mark.parametrize(
    "key", [FieldKey("x"), FieldKey("a.b", "type", "no JSON"), FieldKey("$", "value", "x y"), FieldKey("a", "closed")]
)
def test_field_key_is_parsed_back_from_its_text(key: FieldKey):
    assert key_of(key.text) == key


def sample(events: int = 100, veiled: tuple[str, ...] = (), **counts: int) -> SourceShares:
    return SourceShares(events, counts, frozenset(veiled))


def test_hour_has_shares_by_block_and_a_new_field_counts_as_absent_before():
    hour = with_sample(None, 0, sample(x=50))
    hour = with_sample(hour, 2, sample(x=100, y=1))
    assert hour.row("x")[:4] == bytes([STEPS // 2, UNKNOWN, STEPS, UNKNOWN])
    assert hour.row("y")[:4] == bytes([0, UNKNOWN, STEPS // 100, UNKNOWN])
    assert hour.row("never")[:4] == bytes([0, UNKNOWN, 0, UNKNOWN])


def test_unobservable_share_is_unknown_and_not_zero():
    hour = with_sample(None, 0, SourceShares(100, {"x": 100, TYPE: 100, VALUE: 90}, frozenset()))
    hour = with_sample(hour, 1, SourceShares(100, {"x": 100, TYPE: 100}, frozenset([FieldKey("x", "value").text])))
    hour = with_sample(hour, 2, SourceShares(100, {}, frozenset([FieldKey("$", "closed").text])))
    assert [hour.row(key)[:3] for key in ("x", TYPE, VALUE)] == [
        bytes([STEPS, STEPS, UNKNOWN]),
        bytes([STEPS, STEPS, UNKNOWN]),
        bytes([180, UNKNOWN, UNKNOWN]),
    ]
    assert hour.row(FieldKey("x", "value", "FR").text)[:3] == bytes([0, UNKNOWN, UNKNOWN])
    assert hour.row("a.b.c")[:3] == bytes([0, 0, UNKNOWN])


def test_fields_below_a_closed_object_are_unknown_and_all_others_are_known():
    one = SourceShares(100, {"a": 100}, frozenset([FieldKey("a.b", "closed").text]))
    assert (one.share("a.b.c"), one.share(FieldKey("a.b.c", "type", "null").text)) == (None, None)
    assert (one.share("a"), one.share("a.b"), one.share("a.bb.c"), one.share("c")) == (1.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    "useless",
    [
        pytest.param(sample(FEWEST_EVENTS - 1, x=1), id="too few events"),
        pytest.param(
            SourceShares(100, {f"x{number}": 1 for number in range(MOST_KEYS + 1)}, frozenset()), id="too many keys"
        ),
    ],
)
def test_block_without_usable_counts_changes_nothing(useless: SourceShares):
    assert with_sample(None, 3, useless) == EMPTY
    before = with_sample(None, 0, sample(x=1))
    assert with_sample(before, 3, useless) == before


def test_number_of_keys_in_an_hour_is_bounded():
    hour: FieldShares | None = None
    for place in range(IN_HOUR):
        names = {f"x{place}-{number}": 1 for number in range(MOST_KEYS // 2)}
        hour = with_sample(hour, place, SourceShares(100, names, frozenset()))
    assert hour
    assert len(hour.rows) <= MOST_KEYS
    assert hour.sampled.count(0) == 2


def test_share_of_fields_with_equal_paths_is_at_most_one():
    twice = FieldObservation("p", "shop", 0, 100, [FieldCount("a.b", 100, {}), FieldCount("a.b", 100, {})])
    assert merged([twice]).share("a.b") == 1.0
