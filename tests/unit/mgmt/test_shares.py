"""What is kept of samples: the same whoever looked and in whatever order, and no share where nobody could see."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.ledger.fields import FieldCount, FieldCounter, FieldSample
from mgmt.patterns.blocks import IN_HOUR
from mgmt.patterns.shares import (
    EMPTY,
    FEWEST_EVENTS,
    MOST_KEYS,
    STEPS,
    UNKNOWN,
    FieldHour,
    Key,
    Sample,
    key_of,
    merged,
    with_sample,
)

TYPE, VALUE = Key("x", "type", "string").text, Key("x", "value", "DE").text
events = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["DE", "FR", 1, 2.5, None, {"d": True}]))


def seen(*bodies: Any) -> FieldSample:
    counter = FieldCounter(with_values=True)
    for body in bodies:
        counter.add(body)
    return counter.told("p", "shop", 0)


@given(st.lists(st.lists(events, max_size=8), max_size=4), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_samples_of_several_writers_are_one_in_whatever_order(writers: list[list[Any]], chance: Any):
    samples = [seen(*bodies) for bodies in writers]
    whole = merged(samples)
    chance.shuffle(samples)
    assert merged(samples) == whole
    assert merged([FieldSample("p", "shop", 0, 0, []), *samples]) == whole
    everything = [body for bodies in writers for body in bodies]
    assert whole.events == len(everything)
    for name in "abc":
        assert whole.counts.get(name, 0) == sum(name in body for body in everything)


@pytest.mark.parametrize("key", [Key("x"), Key("a.b", "type", "no JSON"), Key("$", "value", "x y"), Key("a", "closed")])
def test_a_key_is_a_text_and_back(key: Key):
    assert key_of(key.text) == key


def sample(events: int = 100, veiled: tuple[str, ...] = (), **counts: int) -> Sample:
    return Sample(events, counts, frozenset(veiled))


def test_an_hour_keeps_shares_by_block_and_a_field_that_comes_later_was_not_there_before():
    hour = with_sample(None, 0, sample(x=50))
    hour = with_sample(hour, 2, sample(x=100, y=1))
    assert hour.row("x")[:4] == bytes([STEPS // 2, UNKNOWN, STEPS, UNKNOWN])
    assert hour.row("y")[:4] == bytes([0, UNKNOWN, STEPS // 100, UNKNOWN])
    assert hour.row("never")[:4] == bytes([0, UNKNOWN, 0, UNKNOWN])


def test_what_could_not_be_seen_is_unknown_and_not_none():
    hour = with_sample(None, 0, Sample(100, {"x": 100, TYPE: 100, VALUE: 90}, frozenset()))
    hour = with_sample(hour, 1, Sample(100, {"x": 100, TYPE: 100}, frozenset([Key("x", "value").text])))
    hour = with_sample(hour, 2, Sample(100, {}, frozenset([Key("$", "closed").text])))
    assert [hour.row(key)[:3] for key in ("x", TYPE, VALUE)] == [
        bytes([STEPS, STEPS, UNKNOWN]),
        bytes([STEPS, STEPS, UNKNOWN]),
        bytes([180, UNKNOWN, UNKNOWN]),
    ]
    assert hour.row(Key("x", "value", "FR").text)[:3] == bytes([0, UNKNOWN, UNKNOWN])
    assert hour.row("a.b.c")[:3] == bytes([0, 0, UNKNOWN])


def test_below_a_closed_object_nothing_is_known_and_beside_it_all():
    one = Sample(100, {"a": 100}, frozenset([Key("a.b", "closed").text]))
    assert (one.share("a.b.c"), one.share(Key("a.b.c", "type", "null").text)) == (None, None)
    assert (one.share("a"), one.share("a.b"), one.share("a.bb.c"), one.share("c")) == (1.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    "useless",
    [
        pytest.param(sample(FEWEST_EVENTS - 1, x=1), id="too few events"),
        pytest.param(
            Sample(100, {f"x{number}": 1 for number in range(MOST_KEYS + 1)}, frozenset()), id="too many keys"
        ),
    ],
)
def test_a_block_that_says_nothing_changes_nothing(useless: Sample):
    assert with_sample(None, 3, useless) == EMPTY
    before = with_sample(None, 0, sample(x=1))
    assert with_sample(before, 3, useless) == before


def test_an_hour_has_a_bound_whatever_comes():
    hour: FieldHour | None = None
    for place in range(IN_HOUR):
        names = {f"x{place}-{number}": 1 for number in range(MOST_KEYS // 2)}
        hour = with_sample(hour, place, Sample(100, names, frozenset()))
    assert hour
    assert len(hour.rows) <= MOST_KEYS
    assert hour.heard.count(0) == 2


def test_fields_whose_paths_read_the_same_are_at_most_all_events():
    twice = FieldSample("p", "shop", 0, 100, [FieldCount("a.b", 100, {}), FieldCount("a.b", 100, {})])
    assert merged([twice]).share("a.b") == 1.0
