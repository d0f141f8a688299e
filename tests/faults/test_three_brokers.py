"""A box with three brokers in three zones: one of them may die, each may be restarted, and nothing is lost.

A record has three copies, and an ACK needs two of them.
"""

import itertools
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Final

import pytest

from loadgen.events import ACCEPTED
from localbox.demo.logs import SentEvent, read_sent
from localbox.testing import Box, box_of
from tests.support.demo_traffic import DEMO, DemoTraffic
from tests.support.kill_schedule import BoxProcesses
from tests.support.plane import until

pytestmark = [pytest.mark.long, pytest.mark.alone, pytest.mark.timeout(1_200)]
log = logging.getLogger(__name__)
BROKERS: Final = ("kafka", "kafka-2", "kafka-3")
PER_S: Final = 100.0
UP_S: Final = 300.0
ACKED_AGAIN_S: Final = 3.0
CUT_OFF_S: Final = 20.0  # longer than ingest waits for Kafka before it refuses a request
AFTER_S: Final = 10.0


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    with box_of(extra=DEMO, env={"PENSTOCK_KAFKA_BROKERS": "3"}) as box:
        with closing(BoxProcesses(box)) as processes:
            until(processes.lanes_run, "every lane runs", UP_S)
        yield box


class Outage:
    """What senders see of an outage: the answers of ingest while `cause` runs and for AFTER_S after it."""

    def __init__(self, box: Box, cause: Callable[[], None]) -> None:
        with DemoTraffic(box, rate=PER_S) as traffic:
            traffic.until_delivered(int(2 * PER_S), UP_S)
            self._since_us = time.time_ns() // 1_000
            cause()
            time.sleep(AFTER_S)
        self.answers = [one for one in read_sent(traffic.sent_log) if one.sent_us >= self._since_us]
        traffic.until_all_delivered()
        self.figures = traffic.assert_accounted()
        log.info("no ACK for %.2f s; answers %s; %s", self.unacked_s, self.statuses, self.figures)

    @property
    def unacked_s(self) -> float:
        """Return the longest time between two ACKs."""
        acks = sorted(one.answered_us for one in self.answers if one.status == ACCEPTED)
        return max(later - earlier for earlier, later in itertools.pairwise([self._since_us, *acks])) / 1e6

    @property
    def statuses(self) -> dict[int, int]:
        """Return the number of answers by status; 0: none."""
        found: dict[int, int] = {}
        for one in self.answers:
            found[one.status] = found.get(one.status, 0) + 1
        return found

    def refused(self) -> list[SentEvent]:
        """Return the requests that ingest refused."""
        return [one for one in self.answers if one.status not in (ACCEPTED, 0)]


@pytest.mark.parametrize("broker", BROKERS)
def test_acks_continue_within_3_s_after_a_broker_is_killed_and_nothing_is_lost(box: Box, broker: str):
    def kill() -> None:
        box.wait_ready(broker, not_pid=box.kill(broker))

    outage = Outage(box, kill)
    assert outage.unacked_s < ACKED_AGAIN_S, outage.statuses


def test_rolling_restart_of_all_brokers_under_load_loses_nothing(box: Box):
    def restart_each() -> None:
        for broker in BROKERS:
            box.wait_ready(broker, not_pid=box.kill(broker, signal.SIGTERM))

    outage = Outage(box, restart_each)
    assert outage.unacked_s < ACKED_AGAIN_S, outage.statuses


def test_without_enough_copies_ingest_answers_503_and_no_event_is_half_acknowledged(box: Box):
    def cut_off_two() -> None:
        pids = [box.pid(broker) for broker in BROKERS[1:]]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(CUT_OFF_S)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    outage = Outage(box, cut_off_two)
    assert {one.status for one in outage.refused()} == {503}
    assert outage.unacked_s < CUT_OFF_S + AFTER_S
