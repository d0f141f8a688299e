"""A replay on real Kafka and Spark: every event is delivered once more, despite a kill of the whole application."""

import json
import signal
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from controlplane.compute.processes import members, signal_all
from dataplane.ledger.bins import Bin
from dataplane.names import REPLAY_ID_PREFIX
from dataplane.replay.progress_log import read_progress
from dataplane.retrier.redriver import place_reader
from dataplane.tables.replays import ReplayProgress
from loadgen.scripted import Received
from tests.support.data_plane import DataPlane, running_plane
from tests.support.patience import until

PIPE, REPLAY = "replayed", "rep_orders"
EVENTS, BATCH, KEYS = 2_000, 100, 50
RATE = 200.0
IN_FLIGHT = 64  # the destination's concurrency: sends that a kill interrupts
JOB_UNITS = int(RATE * 4)  # of one job: 2 s, and as much again for a job whose facts are stored and progress is not
PATIENCE_S = 240.0


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataPlane]:
    """Kafka, two ingest replicas, the cell under its keeper, and a receiver."""
    with running_plane(tmp_path_factory.mktemp("replay")) as plane:
        yield plane


@pytest.mark.long
@pytest.mark.timeout(1_500)  # includes the start of the data plane
def test_every_event_is_delivered_once_more_although_the_application_is_killed(plane: DataPlane):
    key = plane.add_pipe(PIPE, {"crm": {"url": plane.receiver.url("/crm")}}, sources={"shop": {"key": "key"}})
    since_us = time.time_ns() // 1_000
    positions = sent(plane, key)
    original = plane.settled(PIPE, positions, PATIENCE_S)
    assert original.at("crm", Bin.DELIVERED) == positions
    first = {one.id: one.digest for one in requests(plane, copies=False)}
    assert len(first) == EVENTS

    plane.cluster.publish_replay(REPLAY, PIPE, ["crm"], since_us, RATE)
    until(lambda: len(requests(plane, copies=True)) > EVENTS // 4, "a quarter of the copies", PATIENCE_S)
    running = plane.files.running(plane.cluster.cell)
    assert running is not None
    before = len(requests(plane, copies=True))
    assert before < EVENTS
    signal_all(members(running.incarnation), signal.SIGKILL)

    until(lambda: is_done(plane), "the end of the replay", PATIENCE_S, seen=lambda: progress(plane))
    account = plane.settled(REPLAY, positions, PATIENCE_S)
    assert account.acked == account.at("crm", Bin.DELIVERED) == positions
    assert account.lost() == 0
    assert account.unacked == set()
    copies = requests(plane, copies=True)
    assert {one.id: one.digest for one in copies} == first
    assert Counter(one.headers["penstock-replay"] for one in copies) == {REPLAY: len(copies)}
    assert len(copies) - EVENTS <= IN_FLIGHT + JOB_UNITS, "only the job in progress and the sends in flight repeat"
    assert max(Counter(one.id for one in copies).values()) <= 2
    assert len(requests(plane, copies=False)) == EVENTS
    check_progress(plane)
    after = plane.whole(PIPE)
    assert str(after) == str(original), "the pipe's own account is unchanged"
    assert after.at("crm", Bin.DELIVERED) == positions


@pytest.mark.long
@pytest.mark.timeout(1_500)
def test_topic_that_is_gone_delays_no_copies_for_other_destinations_and_its_own_are_retried(plane: DataPlane):
    pipe, run = "half-gone", f"{REPLAY_ID_PREFIX}half"
    key = plane.add_pipe(pipe, {"crm": {"url": plane.receiver.url("/half")}, "feed": {"type": "topic"}})
    since_us = time.time_ns() // 1_000
    positions = sent(plane, key)
    until(lambda: len(plane.receiver.got["/half"]) >= EVENTS, "the originals", PATIENCE_S)
    plane.cluster.publish_replay(run, pipe, ["crm", "feed"], since_us, 2 * RATE)
    until(lambda: is_done(plane, run), "the end of the replay", PATIENCE_S, seen=lambda: progress(plane, run))

    def is_accounted() -> bool:
        account = plane.whole(run)
        return account.at("crm", Bin.DELIVERED) == account.at("feed", Bin.RETRYING) == positions

    until(is_accounted, "the account of the replay", PATIENCE_S, seen=lambda: plane.whole(run))
    copies = Counter(one.id for one in plane.receiver.got["/half"] if "penstock-replay" in one.headers)
    assert len(copies) == EVENTS
    assert copies.total() <= EVENTS + JOB_UNITS, "one job is repeated"
    found = progress(plane, run)
    assert found is not None
    assert (found.error, found.units) == ("", {"crm": EVENTS, "feed": EVENTS})


def sent(plane: DataPlane, key: str) -> set[str]:
    """Send the events and return their positions."""
    positions: set[str] = set()
    for start in range(0, EVENTS, BATCH):
        events = [{"key": f"k{number % KEYS}", "n": number} for number in range(start, start + BATCH)]
        body = b"\n".join(json.dumps(event).encode() for event in events)
        status, _, text = plane.post(key, body, content_type="application/x-ndjson")
        assert status in (200, 202), text
        positions |= {item["position"] for item in json.loads(text)["items"]}
    assert len(positions) == EVENTS
    return positions


def requests(plane: DataPlane, *, copies: bool) -> list[Received]:
    """Return the requests for copies, or those for originals."""
    return [one for one in list(plane.receiver.got["/crm"]) if ("penstock-replay" in one.headers) == copies]


def progress(plane: DataPlane, run: str = REPLAY) -> ReplayProgress | None:
    """Return the newest stored progress of the replay."""
    reader = place_reader(plane.broker.address)
    try:
        return read_progress(reader, plane.cluster.topics["signals"].name).get(run)
    finally:
        reader.close()


def is_done(plane: DataPlane, run: str = REPLAY) -> bool:
    """Return True if the replay has ended."""
    found = progress(plane, run)
    return found is not None and found.done


def check_progress(plane: DataPlane) -> None:
    """Compare the stored counts with what was sent: a job whose progress was not stored is counted once."""
    found = progress(plane)
    assert found is not None
    assert (found.done, found.error) == (True, "")
    assert (found.asked, found.units, found.filtered, found.failed) == (EVENTS, {"crm": EVENTS}, 0, 0)
    assert found.reached == found.ends
    assert len(found.ends) == plane.partitions
    assert found.read >= EVENTS
