"""End of a demo run: the two logs and the ledger must agree, and each difference is reported."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyroaring import BitMap64

from dataplane.ledger.bins import BucketAccount, BucketFacts, derive
from dataplane.ledger.facts import ACKED, INGEST, PROCESS, Fact, FactKey
from dataplane.ledger.units import position_of
from dataplane.names import Purpose
from localbox.demo.compare import differences, quantile, read_books, result_of
from localbox.demo.ledger import contradictions
from localbox.demo.logs import ReceivedDelivery, SentEvent
from mgmt.ledger.queries.timing import NodeTiming, Percentiles, ShareSeries, Timing, TimingPortion

BUCKET = 29_384_711
ALL = [position_of(1, partition, offset) for partition in range(2) for offset in range(5)]
TOPICS: dict[Purpose, list[tuple[str, int]]] = {"ingest": [("in", 1)], "egress": [("out", 1)]}
PASSED = {("in", 0): 5, ("in", 1): 5, ("out", 0): 10}


def sent(positions: Sequence[int] = ALL, *, status: int = 202, sha256: str = "a"):
    return [SentEvent(n, 1_000, 2_000, status, f"m{p}", p, BUCKET, sha256) for n, p in enumerate(positions)]


def received(positions: Sequence[int] = ALL, *, sha256: str = "a"):
    return [ReceivedDelivery(1_000 + 3_000 * (n + 1), f"m{p}", p, sha256) for n, p in enumerate(positions)]


def account(*, acked: Sequence[int] = ALL, delivered: Sequence[int] = ALL, dead: Sequence[int] = ()) -> BucketAccount:
    facts = {
        FactKey(INGEST, Fact.SENT, ACKED): BitMap64(acked),
        FactKey(PROCESS, Fact.SENT): BitMap64(acked),
        FactKey("transform:receiver", Fact.SENT): BitMap64(acked),
        FactKey("transmit:receiver", Fact.DELIVERED): BitMap64(delivered),
        FactKey("transmit:receiver", Fact.DEAD, "http-404"): BitMap64(dead),
    }
    return derive(BucketFacts(facts=facts, reach={("in", 0): 4, ("out", 0): 9}, passed=PASSED, topics=TOPICS))


def compare(
    sent_lines: Iterable[SentEvent], received_lines: Iterable[ReceivedDelivery], one: BucketAccount | None = None
):
    books, accounts = read_books(sent_lines, received_lines), {BUCKET: one or account()}
    return result_of(books, accounts), differences(books, accounts, destination="receiver")


def test_complete_delivery_has_no_differences():
    result, wrong = compare(sent(), received())
    assert (result.accepted, result.expected, result.delivered, result.lost) == (10, 10, 10, 0)
    assert (result.duplicates, result.dead, result.filtered, result.unacked) == (0, 0, 0, 0)
    assert wrong == []


def test_lag_is_measured_from_the_post_to_the_receivers_response():
    result, _ = compare(sent(), received())
    assert (result.p50_ms, result.p95_ms, result.p99_ms) == (18.0, 30.0, 30.0)
    assert result.events_per_s == pytest.approx(10 / 0.030, abs=0.1)


def test_missing_unit_is_lost_and_listed_even_if_the_ledger_has_it_as_delivered():
    result, wrong = compare(sent(), received(ALL[:-1]))
    assert (result.delivered, result.lost) == (9, 1)
    assert wrong == [f"minute {BUCKET}: delivered according to the ledger, but not the receiver's log: 1 (1-1-4)"]


def test_dead_unit_is_accounted_for_and_not_lost():
    result, wrong = compare(sent(), received(ALL[:-1]), account(delivered=ALL[:-1], dead=ALL[-1:]))
    assert (result.dead, result.lost) == (1, 0)
    assert wrong == []


def test_repeated_delivery_is_a_duplicate_and_no_difference():
    result, wrong = compare(sent(), received([*ALL, ALL[0]]))
    assert (result.delivered, result.duplicates) == (10, 1)
    assert wrong == []


def test_changed_body_is_a_difference():
    _, wrong = compare(sent(), received(sha256="b"))
    assert wrong == ["bodies differ: 10 (1-0-0, 1-0-1, 1-0-2, 1-0-3, 1-0-4, ...)"]


def test_ledger_may_have_more_units_than_were_acked_only_if_the_sender_is_in_doubt():
    _, wrong = compare(sent(ALL[:-1]), received())
    assert wrong == ["the ledger has 1 units that were never ACKed, the sender knows of 0 in doubt"]
    doubtful = SentEvent(9, 1_000, 2_000, 0, "", None, 0, "a")
    result, wrong = compare([*sent(ALL[:-1]), doubtful], received())
    assert (result.accepted, result.unacked) == (9, 1)
    assert wrong == []


def test_acked_unit_missing_from_the_ledger_is_a_difference():
    _, wrong = compare(sent(), received(), account(acked=ALL[:-1]))
    assert any("ACKed to the sender, but not in the ledger: 1 (1-1-4)" in text for text in wrong)


def test_minute_missing_from_the_ledger_is_a_difference():
    books = read_books(sent(), [])
    assert differences(books, {}, destination="receiver") == [f"minute {BUCKET}: 10 ACKed, none in the ledger"]


def test_queued_unit_is_a_difference():
    on_its_way = account(delivered=ALL[:-1])
    passed = {**PASSED, ("out", 0): 3}
    facts = {FactKey(INGEST, Fact.SENT, ACKED): BitMap64(ALL), FactKey(PROCESS, Fact.SENT): BitMap64(ALL)}
    facts[FactKey("transform:receiver", Fact.SENT)] = BitMap64(ALL)
    facts[FactKey("transmit:receiver", Fact.DELIVERED)] = BitMap64(ALL[:-1])
    on_its_way = derive(BucketFacts(facts=facts, reach={("out", 0): 9}, passed=passed, topics=TOPICS))
    _, wrong = compare(sent(), received(ALL[:-1]), on_its_way)
    assert f"minute {BUCKET}: queued in the ledger: 1 (1-1-4)" in wrong


@pytest.mark.parametrize(
    ("values", "q", "expected"),
    [([], 0.5, 0.0), ([7.0], 0.99, 7.0), ([float(n) for n in range(1, 101)], 0.95, 96.0)],
)
def test_quantile_is_an_observed_value(values: list[float], q: float, expected: float):
    assert quantile(values, q) == expected


def figures(p50: int = 1, p95: int = 2, p99: int = 3, most: int = 3, count: int = 10) -> Percentiles:
    return Percentiles(p50, p95, p99, most, count)


def measured(**changes: Any) -> Timing:
    parts = (TimingPortion("ingest", 1, 0.5, 1), TimingPortion("transmit", 1, 0.5, 1))
    nodes = (NodeTiming("normalize", None, None, figures()), NodeTiming("route", None, None, None))
    series = ShareSeries((), (), ())
    sound = Timing(nodes, parts, series, whole=figures(), mean_us=2, source=None, end_to_end_us=2, skewed=False)
    return replace(sound, **changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({}, [], id="sound"),
        pytest.param(
            {"nodes": (NodeTiming("normalize", None, None, figures(p99=4)),)},
            ["latency: normalize has p50 1, p95 2, p99 4 and a maximum of 3 us"],
            id="p99 above the maximum",
        ),
        pytest.param(
            {"pie": (TimingPortion("ingest", -1, 0.0, 1), TimingPortion("transmit", 3, 1.0, 1))},
            ["latency: ingest took -1 us"],
            id="a negative part",
        ),
        pytest.param(
            {"pie": (TimingPortion("ingest", 1, 1.0, 1),)},
            ["latency: the parts add up to 1 us, the whole is 2 us"],
            id="parts that do not add up",
        ),
        pytest.param(
            {"whole": figures(count=9)}, ["latency: 10 delivered, 9 measured"], id="a delivery without timing"
        ),
        pytest.param({"whole": None, "pie": ()}, ["latency: 10 delivered, 0 measured"], id="nothing measured"),
    ],
)
def test_contradictory_latency_figures_are_reported(changes: dict[str, Any], words: list[str]):
    assert contradictions(measured(**changes), delivered=10) == words
