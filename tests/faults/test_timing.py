"""Latency on real lanes: each wait is named, nothing is negative, and slices add up."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dataplane.ledger.bins import Bin
from dataplane.ledger.breakdown import Slice
from tests.support.data_plane import DataPlane
from tests.support.patience import until

pytestmark = pytest.mark.timeout(900)
S = 1_000_000
AHEAD_S = 3_600  # lead of the source's clock


def test_failing_and_retried_destination_shows_its_wait_as_a_retry(plane: DataPlane):
    """One of two destinations is down for a while; the source's clock is an hour ahead of ours."""
    path = "/timing-flaky"
    plane.receiver.answers[path] = 500
    retry = {"local_tries": 1, "delays_s": [1]}
    destinations: dict[str, dict[str, Any]] = {
        "crm": {"url": plane.receiver.url(path), "retry": retry},
        "erp": {"url": plane.receiver.url("/timing-healthy")},
    }
    key = plane.add_pipe("timing", destinations, sources={"shop": {"event_time": "at"}})
    at = (datetime.now(UTC) + timedelta(seconds=AHEAD_S)).isoformat()
    positions = set()
    for n in range(20):
        status, _, text = plane.post(key, f'{{"n":{n},"at":"{at}"}}'.encode())
        assert status == 202, text
        positions.add(text.decode().split('"position":"')[1].split('"')[0])
    until(lambda: plane.whole("timing").at("crm", Bin.RETRYING) == positions, "all are parked at crm", 60)
    until(lambda: plane.whole("timing").at("erp", Bin.DELIVERED) == positions, "erp has them all", 60)
    parked_s = time.monotonic()
    plane.receiver.answers[path] = 200
    plane.settled("timing", positions, 120)
    retried_s = time.monotonic() - parked_s

    plane.books.refresh()
    breakdown = plane.books.breakdown("timing")
    assert breakdown.count == 2 * len(positions), "each is delivered once to each destination"
    for q in (0.0, 0.5, 0.95, 1.0):
        portions = {portion.slice: portion for portion in breakdown.portions(q)}
        assert all(portion.took_us >= 0 for portion in portions.values())
        assert sum(portion.took_us for portion in portions.values()) == breakdown.whole.quantile(q)
    own = portions[Slice.RETRY].own
    assert own.quantile(0.25) == 0, "erp waited for no retry"
    assert own.quantile(0.95) >= 0.9 * S, "crm waited at least as long as its retry delay"
    assert portions[Slice.RETRY].sum_us > 0.5 * breakdown.sum_us, "the retry wait is most of the time"
    assert breakdown.whole.max_us < (retried_s + 120) * S, "the source's clock is not part of it"
    assert breakdown.source.max_us < -(AHEAD_S - 120) * S
    for node in ("ingest", "normalize", "transform:crm", "transform:erp", "transmit:crm", "transmit:erp"):
        timing = plane.books.timing("timing", node)
        assert timing["in"].count == timing["out"].count == timing["own"].count == len(positions), node
        assert timing["own"].min_us >= 0, node
        assert timing["own"].quantile(0.99) <= timing["own"].max_us, node
        for q in (0.0, 0.5, 0.95, 1.0):
            assert timing["in"].quantile(q) <= timing["out"].quantile(q), node
