"""Pauses of delivery after SIGKILL of an executor of a cluster that runs a lane: nothing is lost meanwhile."""

import itertools
import logging
import os
import random
import signal
import statistics
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from localbox.demo.logs import read_received
from localbox.testing import Box
from tests.support.box_lanes import ONE_OF_EACH, beating, pid_of
from tests.support.demo_traffic import DemoTraffic
from tests.support.patience import until
from tests.support.series import longest_gap, p95
from tests.support.sizes import KILLS
from tests.support.spark_cluster import box_on_cluster, executor_of

pytestmark = [pytest.mark.long, pytest.mark.alone, pytest.mark.timeout(3_600)]
log = logging.getLogger(__name__)
UP_S: Final = 300.0
LANES: Final = ("process-0", "transmit-0")
SEEN_S: Final = 3.0
# A lane that ends again within a minute of its start waits longer each time before it returns.
SPAN_S: Final = (31.0, 33.0)
MOST_S: Final = 6.0


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    with box_on_cluster(tmp_path, PENSTOCK_SPARE_EXECUTORS="1") as (box, _):
        yield box


def until_whole(box: Box) -> None:
    """Wait for a lane of each kind that reports from now on."""
    since = datetime.now(UTC)
    until(
        lambda: beating(box, since) == ONE_OF_EACH, "a lane of each kind runs", UP_S, seen=lambda: beating(box, since)
    )


def test_delivery_continues_within_seconds_after_an_executor_is_killed(box: Box):
    turns, chance, kills_us = itertools.cycle(LANES), random.Random(11), list[int]()
    until_whole(box)
    with DemoTraffic(box) as traffic:
        traffic.until_delivered(200, UP_S)
        for _ in range(max(KILLS, 4)):
            until_whole(box)
            time.sleep(chance.uniform(*SPAN_S))
            victim = executor_of(pid_of(box, next(turns)))
            kills_us.append(time.time_ns() // 1_000)
            os.kill(victim, signal.SIGKILL)
            time.sleep(SEEN_S)
            traffic.until_delivered(200, UP_S)
    traffic.until_all_delivered()
    figures = traffic.assert_accounted()
    pauses = pauses_s([one.received_us for one in read_received(traffic.received_log)], kills_us)
    shown = [round(pause, 2) for pause in pauses]
    log.info(
        "no delivery for p50 %.2f, p95 %.2f, max %.2f s; each %s; %s",
        statistics.median(pauses),
        p95(pauses),
        max(pauses),
        shown,
        figures,
    )
    assert max(pauses) < MOST_S


def pauses_s(received_us: list[int], kills_us: list[int]) -> list[float]:
    """Return the longest time without a delivery between each kill and the next one."""
    ends_us = [*kills_us[1:], max(received_us)]
    found = []
    for kill_us, end_us in zip(kills_us, ends_us, strict=True):
        times = [kill_us, *(at_us for at_us in received_us if kill_us < at_us <= end_us)]
        found.append(longest_gap(times) / 1e6)
    return found
