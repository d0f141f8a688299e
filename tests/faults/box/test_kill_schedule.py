"""A whole box under load in which every process is killed in turn: nothing is lost, and no other restarts."""

import logging
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from typing import Final

import pytest

from localbox.demo.logs import read_received
from localbox.testing import Box
from tests.support.demo_traffic import DemoTraffic
from tests.support.kill_schedule import (
    EVERY_KIND,
    EVERYTHING,
    BoxProcesses,
    Kill,
    repeats_of,
    run_schedule,
    too_many_starts,
)
from tests.support.patience import until

pytestmark = pytest.mark.timeout(1_800)
log = logging.getLogger(__name__)
PER_S: Final = 500.0
EVERY_S: Final = 5.0
UP_S: Final = 300.0
IN_FLIGHT: Final = 64  # the demo's destination has the default concurrency: the limit of sends at once
SLACK_US: Final = 1_000_000  # a send may be in flight to the receiver when its lane is killed
FLIGHT_US: Final = 5_000_000  # from a delivery to the kill that prevented its record; next to the other kills
LEAST: Final = 0.5  # share of the events that a sender without interruptions would have sent


@pytest.mark.long
def test_killing_each_kind_of_process_once_loses_nothing_and_restarts_nothing_else(box: Box):
    kill_and_account(box, EVERY_KIND, kills=len(EVERY_KIND), seed=1)


@pytest.mark.long
def test_killing_everything_for_three_minutes_loses_nothing_and_restarts_nothing_else(box: Box):
    kill_and_account(box, EVERYTHING, kills=36, seed=2)


def kill_and_account(box: Box, targets: Sequence[str], *, kills: int, seed: int) -> None:
    logged = len(box.log("cell-c1"))
    with closing(BoxProcesses(box)) as processes:
        until(processes.lanes_run, "every lane runs", UP_S)
        processes.begin()
        began_us = time.time_ns() // 1_000
        with DemoTraffic(box, rate=PER_S) as traffic:
            traffic.until_delivered(int(PER_S), UP_S)
            first_s, acked = time.monotonic(), traffic.acked()
            done = run_schedule(processes, targets, seed=seed, every_s=EVERY_S, kills=kills, on_kill=log_kill)
            until(processes.lanes_run, "every lane runs again", UP_S)
            rate = (traffic.acked() - acked) / (time.monotonic() - first_s)
        traffic.until_all_delivered()
        figures, starts = traffic.assert_accounted(), processes.starts()
    received = [one for one in read_received(traffic.received_log) if one.received_us >= began_us]
    repeats = repeats_of(received, done, SLACK_US)
    by_kill = Counter(repeat.kill for repeat in repeats)
    flight_us = max((repeat.flight_us for repeat in repeats), default=0)
    seen = f"{rate:.0f} ACKs/s; {figures}; repeats {by_kill}, at most {flight_us} us after the delivery"
    log.info("%d kills; %s; started again %s", len(done), seen, +starts)
    assert rate > LEAST * PER_S
    assert not too_many_starts(done, starts), done
    assert not [line for line in box.log("cell-c1")[logged:].splitlines() if "ended: failed" in line]
    assert None not in by_kill, by_kill
    assert max(by_kill.values(), default=0) <= IN_FLIGHT, by_kill
    assert flight_us <= FLIGHT_US


def log_kill(kill: Kill) -> None:
    log.info("killed %s (pid %d)", kill.name, kill.pid)
