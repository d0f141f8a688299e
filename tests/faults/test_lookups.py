"""Look-ups on the whole path: rows change while messages flow, and the lookup replicator is killed."""

import os
import signal

import pytest

from dataplane.ledger.bins import Bin
from tests.support.data_plane import DataPlane
from tests.support.patience import Patience, until

SEEN_S = 5.0
SHOPS = {"table": "shops", "key": "body.shop", "into": "row", "on_missing": "dead"}


def delivered(plane: DataPlane, key: str, path: str) -> bytes:
    """Send one more event and return the body that is delivered."""
    before = len(plane.receiver.got[path])
    status, _, _ = plane.post(key, b'{"shop":"berlin"}')
    assert status == 202
    until(lambda: len(plane.receiver.got[path]) > before, "the event is delivered", 60)
    return plane.receiver.got[path][-1].body


def seen_after(plane: DataPlane, key: str, path: str, vat: bytes) -> float:
    """Return the seconds until a newly sent event carries the row."""
    patience = Patience()
    until(lambda: delivered(plane, key, path).endswith(b'"row":{"vat":%b}}' % vat), f"the row {vat!r}", 60)
    return patience.counted_s


@pytest.mark.timeout(1_800)
def test_changed_rows_apply_soon_although_the_replicator_is_killed(plane: DataPlane):
    plane.cluster.publish_rows("shops", {"berlin": b'{"vat":19}', "rome": b'{"vat":22}'})
    key = plane.add_pipe("lookups", {"crm": {"url": plane.receiver.url("/lookups")}}, enrich=[SHOPS])
    assert delivered(plane, key, "/lookups") == b'{"shop":"berlin","row":{"vat":19}}'
    plane.cluster.publish_rows("shops", {"berlin": b'{"vat":20}'})
    assert seen_after(plane, key, "/lookups", b"20") < SEEN_S

    os.kill(plane.lane_pid("process-0"), signal.SIGKILL)  # the host's only process lane is its lookup replicator
    plane.cluster.publish_rows("shops", {"berlin": b'{"vat":21}'})
    seen_after(plane, key, "/lookups", b"21")
    plane.cluster.publish_rows("shops", {"berlin": b'{"vat":23}'})
    assert seen_after(plane, key, "/lookups", b"23") < SEEN_S

    plane.cluster.publish_rows("shops", {"berlin": None})

    def is_dead() -> bool:
        assert plane.post(key, b'{"shop":"berlin"}')[0] == 202
        return bool(plane.whole("lookups").upstream(Bin.DEAD))

    until(is_dead, "an event whose row was removed is dead", 30)
