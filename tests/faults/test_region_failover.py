"""The active Kafka cluster dies under traffic: the standby one serves the pipe, and each event is accounted for."""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from dataplane.ledger.bins import Bin
from tests.support.broker import Broker
from tests.support.lane_plane import LanePlane
from tests.support.plane import until
from tests.support.promoted_plane import PromotedPlane
from tests.support.sender import Sender
from tests.support.two_regions import TwoRegions

RATE: Final = 500
PAUSED_S: Final = 0.7  # the mirror stands still before the cluster dies, so that some events are not mirrored
SERVED_S: Final = 60.0


class Regions(NamedTuple):
    """The plane of the active region, the standby broker, and the mirror."""

    plane: LanePlane
    standby: Broker
    link: TwoRegions
    var: Path


@pytest.fixture
def regions(tmp_path: Path) -> Iterator[Regions]:
    standby = Broker(tmp_path / "standby")
    standby.start()
    with ExitStack() as ending:
        ending.callback(standby.kill)
        plane = LanePlane(tmp_path)
        ending.callback(plane.broker.kill)
        ending.callback(plane.kill)
        ending.callback(plane.receiver.close)
        link = TwoRegions(plane.broker, standby, tmp_path)
        ending.callback(link.close)
        plane.wait_ready()
        yield Regions(plane, standby, link, tmp_path)


def delivered(plane: LanePlane) -> Counter[str]:
    """Return how often the receiver got each event, by id."""
    return Counter(one.id for one in plane.receiver.got["/drill"])


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.timeout(900)
def test_killed_cluster_is_replaced_within_a_minute_and_unmirrored_events_are_named(regions: Regions):
    plane, link = regions.plane, regions.link
    key = plane.add_pipe("drill", {"crm": {"url": plane.receiver.url("/drill")}})
    link.wait_mirrored()
    with plane.sender(key, RATE) as sender:
        until(lambda: len(sender.acked) > 5 * RATE, "traffic flows", 120)
        until(lambda: link.progress().checkpoint_us, "committed offsets are mirrored")
        os.kill(link.mirror.pid, signal.SIGSTOP)
        time.sleep(PAUSED_S)
        plane.kill()
        killed_s = time.monotonic()
        os.kill(link.mirror.pid, signal.SIGCONT)
        before = len(sender.acked)

        planned = link.region("failover", "--dry-run")
        assert planned.returncode == 0, planned.stderr
        assert "does not answer" in planned.stdout
        assert link.records().promotion is None, "a plan changes nothing"
        done = link.region("failover")
        assert done.returncode == 0, done.stderr
        promoted_s = time.monotonic() - killed_s
        successor = PromotedPlane(regions.var / "promoted", plane, regions.standby)
        known = {acked.id for acked in sender.acked[:before]}

        def is_served() -> bool:
            new = {acked.id for acked in sender.acked[before:]} - known
            return bool(new & delivered(plane).keys())

        until(is_served, "an event that the standby cluster took is delivered", SERVED_S)
        served_s = time.monotonic() - killed_s
        until(lambda: len(sender.acked) > before + 3 * RATE, "traffic flows again", 120)
    try:
        check_each_event(regions, successor, sender, served_s, promoted_s)
    finally:
        successor.kill()


def check_each_event(
    regions: Regions, successor: PromotedPlane, sender: Sender, served_s: float, promoted_s: float
) -> None:
    plane, link = regions.plane, regions.link
    regions.plane.broker.start()  # its log is readable again, its processes stay away
    report = link.region("unmirrored", after_failover=True)
    assert report.returncode == 0, report.stderr
    unmirrored = {line["id"] for line in lines(report.stdout)}
    acked = {one.id for one in sender.acked}
    assert unmirrored, "the mirror stood still before the cluster died"
    assert all(line["pipe"] == "drill" and line["position"] for line in lines(report.stdout))
    until(lambda: acked - unmirrored <= delivered(plane).keys(), "what was acknowledged and mirrored is delivered", 120)
    lost = acked - delivered(plane).keys()
    assert lost <= unmirrored, "every acknowledged event is delivered or named"
    repeats = sum(count - 1 for count in delivered(plane).values())
    # Between the last committed cut and the end: the pause, the interval of the cuts, and what was in flight.
    assert repeats <= RATE * (PAUSED_S + 5)
    mirrored = {one.position for one in sender.acked if one.id not in unmirrored}

    def unaccounted() -> set[str]:
        return mirrored - successor.whole("drill").at("crm", Bin.DELIVERED)

    until(lambda: not unaccounted(), "the ledger has their deliveries", 120, seen=unaccounted)
    figures = f"acked {len(acked)}, unmirrored {len(unmirrored)}, lost {len(lost)}, repeats {repeats}"
    print(f"{figures}; promoted after {promoted_s:.1f} s, served after {served_s:.1f} s")  # noqa: T201
