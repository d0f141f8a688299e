"""One tenant floods with the most expensive events: another's continue, and nothing is lost or repeated."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataplane.ingest.quotas import BURST_S
from dataplane.ledger.bins import Bin
from dataplane.ledger.facts import SLOW, Fact
from dataplane.names import ENTRANCE
from dataplane.tables.records import QuotaRecord
from tests.support.lane_plane import LanePlane
from tests.support.neighbours import STEPS, Flood, delays_ms, send_plain
from tests.support.patience import Patience, until
from tests.support.series import p95

pytestmark = pytest.mark.timeout(900)
FLOOD_S = 12.0
CONNECTIONS = 4  # one alone waits for its responses, and stays below the quota on a slow machine
QUOTA = 400  # events a second, 4.8 ms of CPU each on a fast machine: more than one core


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[LanePlane]:
    plane = LanePlane(tmp_path, partitions=1)  # neither tenant can avoid the other's partition
    try:
        plane.wait_ready()
        yield plane
    finally:
        plane.close()


@pytest.mark.long
@pytest.mark.alone
def test_tenant_that_floods_with_expensive_events_does_not_delay_another(plane: LanePlane):
    crm = {"crm": {"url": plane.receiver.url("/flood")}}
    flood_key = plane.add_pipe("flood", crm, tenant="ten_flood", normalize=STEPS)
    plain_key = plane.add_pipe("plain", {"crm": {"url": plane.receiver.url("/plain")}})
    plane.cluster.publish(QuotaRecord("ten_flood", plane.cluster.version(), events_per_s=QUOTA))
    send_plain(plane.port, plain_key, 2.0, run=0)

    def is_diverted() -> bool:
        plane.books.refresh()
        return (ENTRANCE, Fact.SENT, SLOW) in plane.books.details("flood")

    with Flood(plane.port, flood_key, QUOTA, CONNECTIONS) as flood:
        send_plain(plane.port, plain_key, 2.0, run=1)
        until(is_diverted, "its messages go to the slow lane", 60)
        until(lambda: flood.refused, "the flood exceeds its quota", 60)
        patience = Patience()
        positions = send_plain(plane.port, plain_key, FLOOD_S, run=2)
        most_ms = 1_000 * patience.stretch
    behind = len(flood.positions) - len(plane.receiver.got["/flood"])
    whole = plane.settled("plain", positions, 60)
    assert whole.lost() == 0
    delays = delays_ms(plane.receiver.got["/plain"], 2)
    assert len(delays) == len(positions)
    assert behind > 2 * QUOTA, "the flood exceeded the cell's capacity"
    assert p95(delays) < most_ms, "a tenant that waits for the other waits longer each second"
    assert flood.accepted <= QUOTA * (flood.seconds + BURST_S), "its quota was enforced"
    flooded = plane.settled("flood", flood.positions, 200)
    assert flooded.lost() == 0
    got = Counter(received.position for received in plane.receiver.got["/flood"])
    assert max(got.values()) == 1
    assert flooded.at("crm", Bin.DELIVERED) == got.keys() >= flood.positions
    assert len(got.keys() - flood.positions) <= flood.unknown
