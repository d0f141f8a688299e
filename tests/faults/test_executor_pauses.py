"""Pauses of delivery after SIGKILL of an executor of a cluster that runs a lane: nothing is lost meanwhile."""

import itertools
import logging
import os
import random
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import pytest

from localbox.demo.logs import read_received
from localbox.testing import Box
from tests.support.box_lanes import ONE_OF_EACH, beating, pid_of
from tests.support.demo_traffic import DemoTraffic
from tests.support.patience import until
from tests.support.series import p95, pauses_after, summary_of
from tests.support.sizes import KILLS
from tests.support.spark_cluster import box_on_cluster, executor_of

pytestmark = [pytest.mark.long, pytest.mark.alone, pytest.mark.timeout(3_600)]
log = logging.getLogger(__name__)
UP_S: Final = 300.0
LANES: Final = ("process-0", "transmit-0")
SEEN_S: Final = 3.0
# A lane that ends again within a minute of its start waits longer each time before it returns.
SPAN_S: Final = (31.0, 33.0)
P95_S: Final = 3.0
MOST_S: Final = 6.0


@pytest.fixture
def box() -> Iterator[Box]:
    with box_on_cluster(PENSTOCK_SPARE_EXECUTORS="1") as (box, _):
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
    pauses = pauses_after(kills_us, [one.received_us for one in read_received(traffic.received_log)])
    log.info("no delivery for %s; %s", summary_of(pauses), figures)
    assert p95(pauses) < P95_S
    assert max(pauses) < MOST_S
