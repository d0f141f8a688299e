"""Field drift is reported with the second unusual block, never for noise, and many fields make one finding."""

import math
import random
from collections.abc import Mapping
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgmt.patterns import fields, usual
from mgmt.patterns.blocks import DAY_H, IN_HOUR, WEEK_H
from mgmt.patterns.fields import (
    DRIFTS,
    MOST_WATCHED,
    NOTHING,
    Drift,
    FieldDrifts,
    follow_drift,
    read_fields,
    watched_of,
)
from mgmt.patterns.judge import REPORTED_AFTER, PatternStreak
from mgmt.patterns.shares import EMPTY, FEWEST_EVENTS, STEPS, FieldKey, FieldShares, SourceShares, with_sample
from mgmt.patterns.usual import HOURS_BACK

DAY: Final = DAY_H * IN_HOUR
FIRST: Final = 100 * WEEK_H * IN_HOUR
SHARES: Final = (1, 0.99, 0.95, 0.8, 0.5, 0.2, 0.05, 0.01, 0.002, 0)
Shares = Mapping[str, float]


def typed(path: str, kind: str) -> str:
    return FieldKey(path, "type", kind).text


def valued(path: str, value: str) -> str:
    return FieldKey(path, "value", value).text


class Source:
    """One source of a pipe, evaluated block by block as the Observer does."""

    def __init__(self, seed: int = 0) -> None:
        self.chance = random.Random(seed)
        self.number = FIRST
        self.known: dict[int, FieldShares] = {}
        self.watches: dict[Drift, Mapping[str, PatternStreak]] = {drift: {} for drift in DRIFTS}
        self.told: list[tuple[int, Drift]] = []
        self.words: dict[Drift, str] = {}
        self.over: list[tuple[int, Drift]] = []

    def sends(
        self, shares: Shares, blocks: int = 1, *, events: int = 200, noisy: bool = True, silenced: str = ""
    ) -> None:
        for _ in range(blocks):
            counts = {
                key: self._count(events, share) if noisy else round(events * share) for key, share in shares.items()
            }
            self.block({key: count for key, count in counts.items() if count}, events, silenced)

    def block(self, counts: dict[str, int], events: int, silenced: str = "") -> None:
        sample, (hour, place) = SourceShares(events, counts, frozenset()), divmod(self.number, IN_HOUR)
        back = {hour - back: self.known[hour - back] for back in HOURS_BACK if hour - back in self.known}
        watched = [key for watches in self.watches.values() for key in watched_of("shop", watches)]
        shown = read_fields(sample, back, hour, watched)
        for drift in DRIFTS:
            self._follow(drift, shown, silenced)
        self.known[hour] = with_sample(self.known.get(hour), place, sample)
        self.number += 1

    def _follow(self, drift: Drift, shown: FieldDrifts, silenced: str) -> None:
        before = self.watches[drift]
        known = any(watch.told or watch.silenced for watch in before.values())
        now = follow_drift(drift, before, self.number, {"shop": shown}, {"shop": silenced}, known=known)
        was_told = any(watch.told for watch in before.values())
        if now.whole and now.whole.told and not was_told:
            self.told.append((self.number - FIRST, drift))
        if now.whole and now.whole.over:
            self.over.append((self.number - FIRST, drift))
        self.words[drift] = now.words or self.words.get(drift, "")
        self.watches[drift] = now.keys

    def _count(self, events: int, share: float) -> int:
        return binomial(self.chance, events, share)


def binomial(chance: random.Random, events: int, share: float) -> int:
    """Return a binomial draw, by the normal distribution if that is close enough."""
    if share > 0.5:
        return events - binomial(chance, events, 1 - share)
    variance = events * share * (1 - share)
    if variance > 25:
        return min(events, max(0, round(chance.gauss(events * share, math.sqrt(variance)))))
    count, likely, left = 0, (1 - share) ** events, chance.random()
    while left > likely and count < events:
        left -= likely
        likely *= (events - count) / (count + 1) * share / (1 - share)
        count += 1
    return count


USUAL: Final = {
    "$": 1.0,
    "user": 1.0,
    "user.country": 0.98,
    typed("user.country", "string"): 0.98,
    valued("user.country", "DE"): 0.12,
    valued("user.country", "FR"): 0.7,
    "amount": 1.0,
    typed("amount", "number"): 1.0,
}


@given(st.integers(0, 2**32), st.integers(FEWEST_EVENTS, 1_500))
@settings(max_examples=2, deadline=None)
def test_noise_of_samples_is_not_reported_within_a_week(seed: int, events: int):
    source = Source(seed)
    source.sends({f"f{number}": share for number, share in enumerate(SHARES)}, 8 * DAY, events=events)
    assert source.told == []


@given(st.integers(0, 2**32), st.floats(0.02, 0.2))
@settings(max_examples=2, deadline=None)
def test_share_that_varies_by_day_or_by_block_is_not_reported_after_two_days(seed: int, wild: float):
    source = Source(seed)
    for number in range(4 * DAY):
        daily = 0.5 + 0.3 * math.sin(2 * math.pi * number / DAY)
        burst = 0.9 if number % IN_HOUR in (1, 2) else 0.1
        loose = min(1.0, max(0.0, source.chance.gauss(0.5, wild)))
        source.sends({"daily": daily, "burst": burst, "loose": loose})
    assert [told for told in source.told if told[0] >= 2 * DAY] == []


@pytest.mark.parametrize("events", [30, 60, 300, 1_500])
def test_noise_of_a_hundred_shares_is_reported_less_than_once_in_ten_thousand_hours(events: int):
    """Exact for many short histories: the chance that a share is outside twice in a row, twelve times an hour."""
    chance = random.Random(events)
    rates = [_false_alarms_per_hour(events, share, chance) for share in SHARES for _ in range(20)]
    assert 100 * sum(rates) / len(rates) < 1e-4


def test_false_alarm_rate_detects_a_limit_that_is_too_narrow(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(usual, "REACH", 2.0)
    assert 100 * _false_alarms_per_hour(300, 0.5, random.Random(1)) > 1e-4


def _false_alarms_per_hour(events: int, share: float, chance: random.Random) -> float:
    past = [binomial(chance, events, share) for _ in range(2 * IN_HOUR)]  # the shortest compared history: two days
    found = fields._usual(sorted(round(count / events * STEPS) for count in past), "", events)
    assert found
    low, high = 0.0, 0.0
    for count in range(events + 1):
        likely = _likely(count, events, share)
        low, high = low + likely * (count / events < found.below), high + likely * (count / events > found.above)
    return IN_HOUR * (low**REPORTED_AFTER + high**REPORTED_AFTER)


def _likely(count: int, events: int, share: float) -> float:
    if share in (0, 1):
        return float(count == events * share)
    ways = math.lgamma(events + 1) - math.lgamma(count + 1) - math.lgamma(events - count + 1)
    return math.exp(ways + count * math.log(share) + (events - count) * math.log(1 - share))


@pytest.mark.parametrize("events", [60, 1_500])
@pytest.mark.parametrize(
    ("change", "told", "words"),
    [
        pytest.param(
            {"user.country": 0.03, typed("user.country", "string"): 0.03},
            "missing",
            "field user.country of source shop in ",
            id="a field stops arriving",
        ),
        pytest.param({"coupon": 0.7}, "new", "field coupon of source shop in ", id="a new field"),
        pytest.param(
            {typed("amount", "number"): 0.04, typed("amount", "string"): 0.96},
            "type",
            "field amount of source shop is a string in ",
            id="a number becomes a text",
        ),
        pytest.param(
            {valued("user.country", "DE"): 0.71, valued("user.country", "FR"): 0.11},
            "skew",
            "field user.country of source shop is ",
            id="a category skews",
        ),
    ],
)
@pytest.mark.parametrize("after", [4 * IN_HOUR, 2 * DAY + 77])
def test_change_is_reported_with_its_second_block(events: int, change: Shares, told: Drift, words: str, after: int):
    source = Source(events)
    source.sends(USUAL, after, events=events)
    source.sends({**USUAL, **change}, REPORTED_AFTER, events=events)
    assert source.told == [(after + 1, told)]
    assert source.words[told].startswith(words)


def test_finding_states_the_observed_and_the_usual_share():
    source = Source()
    source.sends(USUAL, 2 * DAY, noisy=False)
    source.sends(USUAL | {valued("user.country", "DE"): 0.71}, REPORTED_AFTER, noisy=False)
    assert source.words["skew"] == (
        "field user.country of source shop is DE in 71 % of the events where 12 % is usual at this hour of the day"
    )


def test_fields_that_disappear_together_are_one_finding_that_names_the_outermost():
    order = {"order": 1.0} | {f"order.f{number}": 0.99 for number in range(14)}
    source = Source()
    source.sends(USUAL | order, DAY)
    source.sends(USUAL, REPORTED_AFTER)
    assert source.told == [(DAY + 1, "missing")]
    assert source.words["missing"].startswith("field order of source shop in 0 % of the events where 100 % is usual")
    assert source.words["missing"].endswith(", and 14 more")


def test_unusual_blocks_of_two_different_fields_are_not_reported():
    source = Source()
    source.sends(USUAL, DAY)
    source.sends(USUAL | {"a": 0.9})
    source.sends(USUAL | {"b": 0.9})
    assert source.told == []


@pytest.mark.parametrize(("change", "told"), [({"amount": 0.1}, "missing"), ({"coupon": 0.9}, "new")])
def test_finding_ends_after_two_normal_blocks_and_not_after_one(change: Shares, told: Drift):
    source = Source()
    source.sends(USUAL, DAY)
    source.sends({**USUAL, **change}, 3)
    source.sends(USUAL)
    assert source.over == []
    source.sends(USUAL)
    assert (source.told, source.over) == ([(DAY + 1, told)], [(DAY + 4, told)])


def test_value_usual_at_this_hour_yesterday_is_no_finding_even_if_weeks_are_compared():
    source = Source()
    source.sends({"$": 1.0}, 15 * DAY)
    source.sends({"$": 1.0, "coupon": 0.6}, 2 * DAY)
    assert source.told == [(15 * DAY + 1, "new")]
    ((over, _),) = source.over
    assert 16 * DAY <= over < 16 * DAY + IN_HOUR


def test_different_events_at_weekends_are_reported_once():
    week = [{"$": 1.0}] * 5 + [{"$": 1.0, "kind": 0.9}] * 2
    source = Source()
    for shares in week * 3:
        source.sends(shares, DAY)
    assert [(at // DAY, drift) for at, drift in source.told] == [(5, "new")]


def test_change_explained_by_a_schema_is_silenced_and_reported_only_if_it_lasts_longer():
    source = Source()
    source.sends(USUAL, DAY)
    source.sends(USUAL | {"coupon": 0.9}, 3, silenced="after schema 2")
    (watch,) = source.watches["new"].values()
    assert (source.told, watch.silenced) == ([], "after schema 2")
    source.sends(USUAL | {"coupon": 0.9}, REPORTED_AFTER)
    assert [drift for _, drift in source.told] == ["new"]


def test_block_with_too_few_events_neither_starts_nor_ends_a_finding():
    source = Source()
    source.sends(USUAL, DAY)
    source.sends(USUAL | {"amount": 0.1}, 2)
    source.sends(USUAL, 5, events=FEWEST_EVENTS - 1)
    assert (source.told, source.over) == ([(DAY + 1, "missing")], [])


def test_categories_that_were_not_observable_before_are_not_compared():
    known: dict[int, FieldShares] = {}
    ids = SourceShares(200, {"id": 200}, frozenset([FieldKey("id", "value").text]))
    for number in range(FIRST, FIRST + DAY):
        hour, place = divmod(number, IN_HOUR)
        known[hour] = with_sample(known.get(hour), place, ids)
    one = SourceShares(200, {"id": 200, valued("id", "ada"): 200}, frozenset())
    assert read_fields(one, known, (FIRST + DAY) // IN_HOUR).odd == {}


def test_new_pipe_has_no_findings():
    assert read_fields(SourceShares(100, {"x": 100}, frozenset()), {}, 5) == NOTHING
    assert read_fields(SourceShares(100, {"x": 100}, frozenset()), dict.fromkeys(range(10), EMPTY), 5) == NOTHING


def test_number_of_watched_fields_is_bounded():
    source = Source()
    source.sends({"$": 1.0}, DAY)
    source.sends({"$": 1.0} | {f"f{number}": 1.0 for number in range(2 * MOST_WATCHED)}, REPORTED_AFTER, noisy=False)
    assert len(source.watches["new"]) == MOST_WATCHED
    assert source.words["new"].endswith(f", and {MOST_WATCHED - 1} more")
