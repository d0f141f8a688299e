"""A whole box under a steady load for hours: memory stays flat, the p95 does not move, and nothing is lost."""

import logging
import statistics
import sys
import time
from contextlib import closing
from typing import Final

import pytest

from localbox.testing import Box
from tests.support.demo_traffic import DemoTraffic
from tests.support.kill_schedule import BoxProcesses
from tests.support.patience import until
from tests.support.sizes import SOAK_PER_S, SOAK_S
from tests.support.soak import Deliveries, ProcessSampler, deliveries_of

pytestmark = [pytest.mark.long, pytest.mark.alone, pytest.mark.timeout(SOAK_S + 3_600)]
log = logging.getLogger(__name__)
UP_S: Final = 300.0
EVERY_S: Final = min(15.0, SOAK_S / 40)  # a sample of memory and CPU time
WARM_UP: Final = 0.25  # part of the run after which memory and p95 count
FLAT_MB_PER_H: Final = 1.0
JUDGED_S: Final = 3_600
P95_RISE: Final = 1.25  # of the last quarter compared with the second
P95_NOISE_MS: Final = 2.0


def test_box_under_steady_load_keeps_its_memory_and_its_p95_and_loses_nothing(box: Box):
    with closing(BoxProcesses(box)) as processes:
        until(processes.lanes_run, "every lane runs", UP_S)
        processes.begin()
        began_us = time.time_ns() // 1_000
        with DemoTraffic(box, rate=SOAK_PER_S) as traffic, ProcessSampler(processes, EVERY_S) as sampler:
            time.sleep(SOAK_S)
        starts = +processes.starts()
    trends = sampler.trends(after_s=SOAK_S * WARM_UP)
    for name, trend in trends.items():
        log.info("%s: %.1f MB, %+.2f MB/h (standard error %.2f)", name, *trend)
    log.info("MB at each twelfth of the run: %s", sampler.memory_by_step(SOAK_S / 12))
    early, late = (SOAK_S / 4, SOAK_S / 2), (SOAK_S * 3 / 4, SOAK_S)
    cores, late_cores = sampler.cores(*early), sampler.cores(*late)
    log.info("cores in use: %.2f early, %.2f late", sum(cores.values()), sum(late_cores.values()))
    log.info("cores by process: %s", {name: (round(cores[name], 3), round(late_cores[name], 3)) for name in cores})
    log.info("fixed work: %.1f ms early, %.1f ms late", sampler.work_ms(*early), sampler.work_ms(*late))
    account = box.run(sys.executable, "-m", "tests.support.soak_account", traffic.pipe, timeout_s=900)
    found = deliveries_of(traffic.sent_log, traffic.received_log, began_us)
    early_ms, late_ms = p95_of_quarters(found)
    log.info("%d ACKed, %d lost, %d repeated; p95 %.1f ms early, %.1f ms late", *found[:3], early_ms, late_ms)
    log.info("p95 by minute: %s", [round(p95_ms, 1) for p95_ms in found.p95_ms.values()])
    assert account.returncode == 0, account.stdout + account.stderr
    assert (found.lost, found.repeated, starts) == (0, 0, {})
    if SOAK_S >= JUDGED_S:  # in less time, a heap that is still growing to its size looks like a leak
        assert {name: trend for name, trend in trends.items() if trend.least_mb_per_h > FLAT_MB_PER_H} == {}
    assert late_ms <= early_ms * P95_RISE + P95_NOISE_MS


def p95_of_quarters(found: Deliveries) -> tuple[float, float]:
    """Return the median p95 of the minutes in the second and in the last quarter of the run."""
    minutes = [found.p95_ms[minute] for minute in sorted(found.p95_ms)]
    quarter = max(1, len(minutes) // 4)
    return statistics.median(minutes[quarter : 2 * quarter] or minutes), statistics.median(minutes[-quarter:])
