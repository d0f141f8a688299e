"""Full disks: ingest ACKs only what it can journal, lanes work without their files, and all recover later."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from dataplane.ledger.bins import Bin
from dataplane.names import LANE_KINDS
from dataplane.tables.optional_files import CALM_S
from tests.support.data_plane import REPLICAS, DataPlane
from tests.support.full_disk import FullDisk, full_disk
from tests.support.lane_plane import LanePlane
from tests.support.patience import until
from tests.support.sender import CONNECTIONS
from tests.support.watch import Heartbeats

UNLIMITED = (-1, -1)


@contextmanager
def no_room(plane: DataPlane) -> Iterator[None]:
    """Keep the replicas' files from growing: the system refuses their writes, as a full disk does."""
    replicas = [psutil.Process(plane.replicas.pid(name)) for name in REPLICAS]
    for replica in replicas:
        replica.rlimit(psutil.RLIMIT_FSIZE, (0, -1))
    try:
        yield
    finally:
        for replica in replicas:
            replica.rlimit(psutil.RLIMIT_FSIZE, UNLIMITED)


@pytest.mark.timeout(900)
def test_event_that_cannot_be_journalled_is_not_acked(plane: DataPlane):
    key = plane.add_pipe("disk", {"crm": {"url": plane.receiver.url("/disk")}})
    with plane.sender(key, 50) as sender:
        time.sleep(1)
        with no_room(plane):
            until(lambda: len(sender.refusals) >= 2 * CONNECTIONS, "requests from before are answered", 30)
            before, refused = len(sender.acked), len(sender.refusals)
            until(lambda: len(sender.refusals) >= refused + 10 * CONNECTIONS, "each connection is refused often", 30)
            meanwhile = len(sender.acked) - before
        time.sleep(1)
    assert meanwhile == 0, "nothing is ACKed while it cannot be journalled"
    assert {status for status, _ in sender.refusals} == {503}, "senders got 503"
    assert all(retry_after for _, retry_after in sender.refusals)

    whole = plane.settled("disk", sender.positions)
    got = Counter(received.position for received in plane.receiver.got["/disk"])
    assert whole.acked == sender.positions
    assert whole.unacked == got.keys() - sender.positions, "stored but never ACKed is counted as unacked"
    assert whole.at("crm", Bin.DELIVERED) == got.keys()
    assert (whole.lost(), max(got.values())) == (0, 1)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FullDisk]:
    with full_disk(tmp_path) as made:
        yield made


@pytest.fixture
def lanes(tmp_path: Path, disk: FullDisk) -> Iterator[LanePlane]:
    """One lane of each kind whose files are on a disk that will be full; ingest has its own disk."""
    made = LanePlane(tmp_path, of_lanes={"PENSTOCK_VAR": str(disk.folder)})
    try:
        made.wait_ready()
        yield made
    finally:
        made.close()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_lanes_on_a_full_disk_continue_report_it_and_use_it_again_once_there_is_room(lanes: LanePlane, disk: FullDisk):
    """Events are delivered, retried through the retrier, or dead, over many checkpoints."""
    lanes.receiver.answers |= {"/full/again": 503, "/full/dead": 400}
    retry = {"local_tries": 1, "delays_s": [1]}
    names = ("good", "again", "dead")
    key = lanes.add_pipe("full", {n: {"url": lanes.receiver.url(f"/full/{n}"), "retry": retry} for n in names})
    beats = Heartbeats(lanes.broker.address)

    def failing() -> dict[str, int]:
        beats.refresh()
        return {kind: beat.failing_files for kind in LANE_KINDS if (beat := beats.latest.get(f"{kind}-0"))}

    with lanes.sender(key, 50) as sender:
        time.sleep(2)
        lanes.receiver.answers["/full/again"] = 204
        time.sleep(6)
        until(lambda: len(failing()) == len(LANE_KINDS) and all(failing().values()), "each says so", 30, seen=failing)
    whole = lanes.settled("full", sender.positions, 120)
    assert not any(lanes.is_dead(kind) for kind in LANE_KINDS), "no lane ended"
    stored = sender.positions | whole.unacked  # a slow machine may answer 503 to an event that is stored
    assert len(whole.unacked) <= len(sender.unknown)
    assert whole.at("good", Bin.DELIVERED) == whole.at("again", Bin.DELIVERED) == stored
    refused = whole.at("dead", Bin.DEAD) | whole.at("dead", Bin.HELD)  # repeated refusals suspend it
    assert (refused, whole.lost()) == (stored, 0)

    disk.make_room()
    with lanes.sender(key, 50) as more:
        time.sleep(CALM_S / 2)
        until(lambda: not any(failing().values()), "all can be used again", 3 * CALM_S + 30, seen=failing)
    lanes.settled("full", sender.positions | more.positions, 120)
    settled = sorted(path.name for path in (disk.folder / "data" / "settled").iterdir() if path.stat().st_size)
    assert any("egress" in name for name in settled), "settled units are written to disk again"
    assert (disk.folder / "data" / "control.json").exists()
    beats.close()
