"""The broker loses records that it had acknowledged and reuses their offsets: the ledger names each lost record.

The log's end is cut off on disk while the broker is killed, as by a restored backup or a lost page cache.
"""

import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from dataplane.ledger.bins import Bin
from dataplane.names import LANE_KINDS, LaneKind
from dataplane.tables.records import CellRecord
from tests.support.lane_plane import LanePlane
from tests.support.patience import until

SENT: Final = 20
KEPT: Final = 8
_HEAD: Final = struct.Struct(">qi")  # of a record batch: the base offset, the length of what follows


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[LanePlane]:
    plane = LanePlane(tmp_path, partitions=1, more={"PENSTOCK_GRACE_S": "900"})  # one bucket for all events
    try:
        plane.wait_ready()
        yield plane
    finally:
        plane.close()


class Story:
    """One pipe whose events all have the same minute, so that only the log distinguishes them."""

    def __init__(self, plane: LanePlane, name: str) -> None:
        self.plane, self.name = plane, name
        self.url = f"/{name}"
        self.key = plane.add_pipe(name, {"crm": {"url": plane.receiver.url(self.url)}})
        self.time = datetime.now(UTC).isoformat()

    def send(self, count: int, first: int) -> list[str]:
        """Send events one by one, each until it is ACKed; return their positions."""
        return [self._send_one(number) for number in range(first, first + count)]

    def _send_one(self, number: int) -> str:
        ce = {"ce_specversion": "1.0", "ce_id": f"e{number}", "ce_type": "t", "ce_source": "s", "ce_time": self.time}
        until(lambda: self._posted(number, ce), "the event is ACKed", 60)
        return self._position

    def _posted(self, number: int, ce: dict[str, str]) -> bool:
        status, _, body = self.plane.post(self.key, b'{"n":%d}' % number, **ce)
        if status == 202:
            self._position = body.split(b'"position":"')[1].split(b'"')[0].decode()
        return status == 202

    def got(self) -> set[bytes]:
        return {one.body for one in self.plane.receiver.got.get(self.url, [])}


def run_lanes(plane: LanePlane, *kinds: LaneKind) -> None:
    """Let the cell run lanes of these kinds only."""
    cluster = plane.cluster
    lanes = dict.fromkeys(kinds, 1)
    cluster.publish(CellRecord(cluster.cell, cluster.version(), cluster.epoch, lanes, cluster.topics))


def cut(plane: LanePlane, var: Path, keep: int) -> None:
    """Kill the broker, truncate the ingest topic's log at the offset `keep`, start the broker."""
    plane.broker.kill()
    (folder,) = (var / "broker").rglob(f"{plane.cluster.topics['ingest'].name}-0")
    (segment,) = folder.glob("*.log")
    raw, place = segment.read_bytes(), 0
    while place < len(raw):
        offset, length = _HEAD.unpack_from(raw, place)
        if offset >= keep:
            break
        place += _HEAD.size + length
    with segment.open("r+b") as file:
        file.truncate(place)
    for derived in (*folder.glob("*.index"), *folder.glob("*.timeindex"), *folder.glob("*.snapshot")):
        derived.unlink()
    plane.broker.start()


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_acked_events_that_the_broker_lost_before_they_were_read_are_named_as_lost(plane: LanePlane, tmp_path: Path):
    story = Story(plane, "unread")
    run_lanes(plane, *(kind for kind in LANE_KINDS if kind != "process"))
    until(lambda: plane.is_dead("process"), "the process lane drains", 60)
    before = story.send(SENT, 0)
    cut(plane, tmp_path, KEPT)
    after = story.send(SENT, SENT)
    reused = set(before) & set(after)
    assert len(reused) >= SENT - KEPT - 2, "the new events have the offsets of the lost ones"

    run_lanes(plane, *LANE_KINDS)
    plane.start_again("process")
    whole = plane.settled(story.name, {*before, *after}, 90)
    assert whole.upstream(Bin.LOST) == set(before[KEPT:])
    assert whole.lost() == SENT - KEPT
    assert story.got() == {b'{"n":%d}' % number for number in (*range(KEPT), *range(SENT, 2 * SENT))}


@pytest.mark.timeout(1_200)
def test_acked_events_at_offsets_that_lanes_have_committed_are_named_as_lost(plane: LanePlane, tmp_path: Path):
    story = Story(plane, "passed")
    before = story.send(SENT, 0)
    plane.settled(story.name, set(before), 60)
    run_lanes(plane, *(kind for kind in LANE_KINDS if kind != "process"))
    until(lambda: plane.is_dead("process"), "the process lane drains", 60)
    cut(plane, tmp_path, KEPT)
    after = story.send(SENT, SENT)

    run_lanes(plane, *LANE_KINDS)
    plane.start_again("process")
    whole = plane.settled(story.name, {*before, *after}, 90)
    overwritten = set(before) & set(after)
    assert len(overwritten) >= SENT - KEPT - 2
    lost = whole.upstream(Bin.LOST)
    assert overwritten <= lost, "they are below the lanes' committed offset"
    assert lost <= set(before[KEPT:]), "and at most those that a record without an ACK has overwritten"
    assert whole.lost() == len(lost)
    numbers = {b'{"n":%d}' % number for number in range(SENT)}
    numbers |= {b'{"n":%d}' % (SENT + n) for n, position in enumerate(after) if position not in overwritten}
    assert story.got() == numbers
