"""A whole box under load in which every process is killed in turn: nothing is lost, and no other restarts."""

import logging
import time
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
    repeats_by_kill,
    run_schedule,
    too_many_starts,
)
from tests.support.plane import until

pytestmark = pytest.mark.timeout(1_800)
log = logging.getLogger(__name__)
PER_S: Final = 500.0
EVERY_S: Final = 5.0
UP_S: Final = 300.0
IN_FLIGHT: Final = 64  # the demo's destination has the default concurrency: the limit of sends at once
SLACK_US: Final = 1_000_000  # a send may be in flight to the receiver when its lane is killed


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
            done = run_schedule(processes, targets, seed=seed, every_s=EVERY_S, kills=kills, on_kill=log_kill)
            until(processes.lanes_run, "every lane runs again", UP_S)
        traffic.until_all_delivered()
        figures, starts = traffic.assert_accounted(), processes.starts()
    received = [one for one in read_received(traffic.received_log) if one.received_us >= began_us]
    repeats = repeats_by_kill(received, done, SLACK_US)
    log.info("%d kills; %s; repeats %s; started again %s", len(done), figures, repeats, +starts)
    assert not too_many_starts(done, starts), done
    assert not [line for line in box.log("cell-c1")[logged:].splitlines() if "ended: failed" in line]
    assert None not in repeats, repeats
    assert max(repeats.values(), default=0) <= IN_FLIGHT, repeats


def log_kill(kill: Kill) -> None:
    log.info("killed %s (pid %d)", kill.name, kill.pid)
