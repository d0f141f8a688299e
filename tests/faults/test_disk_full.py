"""Ingest cannot write its journal: nothing is ACKed that the ledger would not know of, and afterwards all goes on."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from dataplane.ledger.bins import Bin
from tests.rig.data_plane import REPLICAS, DataPlane

UNLIMITED = (-1, -1)


@contextmanager
def no_room(plane: DataPlane) -> Iterator[None]:
    """No file of the replicas may grow any more: the system refuses their writes, as a full disk does."""
    replicas = [psutil.Process(plane.replicas.pid(name)) for name in REPLICAS]
    for replica in replicas:
        replica.rlimit(psutil.RLIMIT_FSIZE, (0, -1))
    try:
        yield
    finally:
        for replica in replicas:
            replica.rlimit(psutil.RLIMIT_FSIZE, UNLIMITED)


@pytest.mark.timeout(300)
def test_what_cannot_be_journalled_is_not_acked(plane: DataPlane):
    key = plane.add_pipe("disk", {"crm": {"url": plane.receiver.url("/disk")}})
    with plane.sender(key, 50) as sender:
        time.sleep(1)
        with no_room(plane):
            time.sleep(0.3)  # what was under way is answered
            before = len(sender.acked)
            time.sleep(2)
            meanwhile = len(sender.acked) - before
        time.sleep(1)
    assert meanwhile == 0, "nothing is ACKed while it cannot be noted"
    assert {status for status, _ in sender.refusals} == {503}, "senders were told"
    assert all(retry_after for _, retry_after in sender.refusals)

    whole = plane.settled("disk", sender.positions)
    got = Counter(received.position for received in plane.receiver.got["/disk"])
    assert whole.acked == sender.positions
    assert whole.unacked == got.keys() - sender.positions, "stored and never ACKed shows as unacked"
    assert whole.at("crm", Bin.DELIVERED) == got.keys()
    assert (whole.lost(), max(got.values())) == (0, 1)
