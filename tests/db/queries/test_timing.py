"""Latency of a pipe for pages and the API: every figure covers the same population."""

import pytest

from dataplane.ledger.breakdown import PATH, Slice
from mgmt.ledger.queries.bucket_range import BucketRange
from mgmt.ledger.queries.timing import SLICE_NAMES, timing
from mgmt.ledger.queries.trends import trends_of
from mgmt.models import Pipe
from tests.db.console.truth import Truth

pytestmark = pytest.mark.django_db
S = 1_000_000
MINUTE = 29_833_333
SPAN = BucketRange("15m", MINUTE - 14, MINUTE)


@pytest.fixture
def truth(pipe: Pipe) -> Truth:
    return Truth(pipe)


def test_every_slice_has_a_unique_name_in_path_order():
    assert list(SLICE_NAMES) == list(PATH)
    assert len(set(SLICE_NAMES.values())) == len(SLICE_NAMES)


def test_slices_add_up_to_the_whole_at_p95_and_in_the_mean(truth: Truth):
    truth.delivered(MINUTE, {Slice.INGEST: 2_000, Slice.TRANSMIT: 5_000}, count=90)
    truth.delivered(MINUTE - 3, {Slice.INGEST: 2_000, Slice.RETRY: 60 * S, Slice.TRANSMIT: 9_000}, count=10)
    found = timing(pipe_id=truth.pipe.id, span=SPAN)
    assert found.whole is not None
    assert sum(portion.took_us for portion in found.pie) == found.whole.p95
    assert sum(portion.share for portion in found.pie) == pytest.approx(1)
    assert found.mean_us == round((90 * 7_000 + 10 * (60 * S + 11_000)) / 100)
    assert sum(portion.mean_us for portion in found.pie) == pytest.approx(found.mean_us, abs=len(found.pie))
    assert {portion.name: portion.took_us > 0 for portion in found.pie} == {
        "ingest": True,
        "retry wait": True,
        "transmit": True,
    }


def test_breakdown_over_time_has_a_gap_where_nothing_was_delivered(truth: Truth):
    truth.delivered(MINUTE, {Slice.TRANSMIT: 5_000})
    truth.delivered(MINUTE - 3, {Slice.INGEST: 1_000, Slice.HELD: 3_000})
    series = timing(pipe_id=truth.pipe.id, span=SPAN).series
    assert series.names == ("ingest", "held", "transmit"), "in path order"
    assert series.values[-1] == (0.0, 0.0, 1.0)
    assert series.values[-2] == (None, None, None)
    assert series.values[-4] == pytest.approx((0.25, 0.75, 0.0), abs=0.02)


def test_process_duration_of_a_node_is_measured_per_message(truth: Truth):
    """One message waits and the other does not: the difference of the percentiles fits neither."""
    truth.lag(MINUTE, "normalize", "in", [0, 100_000])
    truth.lag(MINUTE, "normalize", "out", [99_000, 100_000])
    truth.lag(MINUTE, "normalize", "own", [99_000, 0])
    (node,) = timing(pipe_id=truth.pipe.id, span=SPAN).nodes
    assert node.own is not None
    assert (node.own.p50, node.own.max, node.own.count) == (0, 99_000, 2)
    assert node.own.p50 <= node.own.p95 <= node.own.p99 <= node.own.max


def test_source_clock_is_not_part_of_the_whole(truth: Truth):
    truth.lag(MINUTE, "transmit:crm", "in", [-4 * S])
    truth.lag(MINUTE, "transmit:crm", "out", [-4 * S + 7_000])
    truth.delivered(MINUTE, {Slice.INGEST: 2_000, Slice.TRANSMIT: 5_000}, source_us=-4 * S - 2_000)
    found = timing(pipe_id=truth.pipe.id, span=SPAN)
    assert (found.whole.max, found.skewed) == (7_000, True) if found.whole else pytest.fail("nothing was delivered")
    assert found.source is not None
    assert found.source.max == -4 * S - 2_000
    lag_us = trends_of([truth.pipe.id], BucketRange("1h", MINUTE - 59, MINUTE)).by_pipe[truth.pipe.id].lag_p95_us
    assert lag_us is not None
    assert lag_us < 0


def test_pipe_without_deliveries_has_no_breakdown(truth: Truth):
    truth.lag(MINUTE, "normalize", "own", [5])
    found = timing(pipe_id=truth.pipe.id, span=SPAN)
    assert (found.pie, found.whole, found.mean_us, found.source, found.end_to_end_us) == ((), None, None, None, None)
    assert found.series.names == ()
