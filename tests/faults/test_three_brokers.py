"""A box with three brokers in three zones: one of them may die, each may be restarted, and nothing is lost.

A record has three copies, and an ACK needs two of them.
"""

import itertools
import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Final

import pytest

from loadgen.events import ACCEPTED
from localbox.demo.logs import read_sent
from localbox.testing import Box, box_of
from tests.support.demo_traffic import DEMO, DemoTraffic
from tests.support.kafka import broker_admin
from tests.support.kill_schedule import BoxProcesses
from tests.support.patience import until
from tests.support.series import longest_gap, pauses_after, summary_of
from tests.support.sizes import KILLS

pytestmark = [pytest.mark.long, pytest.mark.alone, pytest.mark.timeout(1_200)]
log = logging.getLogger(__name__)
BROKERS: Final = ("kafka", "kafka-2", "kafka-3")
PER_S: Final = 100.0
UP_S: Final = 300.0
ACKED_AGAIN_S: Final = 3.0
AFTER_KILL_S: Final = 6.0  # a new controller waits for heartbeats of the killed broker, too
STOPPED_S: Final = 20.0  # longer than ingest waits for Kafka before it refuses a request
IN_FLIGHT_S: Final = 0.5  # an ACK may be on its way when the brokers stop
BACK_S: Final = 10.0
AFTER_S: Final = 15.0
BETWEEN_S: Final = 3.0


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    with box_of(extra=DEMO, env={"PENSTOCK_KAFKA_BROKERS": "3"}) as box:
        with closing(BoxProcesses(box)) as processes:
            until(processes.lanes_run, "every lane runs", UP_S)
        yield box


class Outage:
    """Answers of ingest while `cause` runs and for AFTER_S after it; `ended_us`: when `cause` has returned."""

    def __init__(self, box: Box, cause: Callable[[], None]) -> None:
        with DemoTraffic(box, rate=PER_S) as traffic:
            traffic.until_delivered(int(2 * PER_S), UP_S)
            self.began_us = now_us()
            cause()
            self.ended_us = now_us()
            time.sleep(AFTER_S)
            self._until_us = now_us()
        self.answers = [one for one in read_sent(traffic.sent_log) if self.began_us <= one.sent_us < self._until_us]
        traffic.until_all_delivered()
        self.figures = traffic.assert_accounted()
        log.info("no ACK for %.2f s; answers %s; %s", self.unacked_s, self.statuses, self.figures)

    @property
    def acks_us(self) -> list[int]:
        """Return the times of the ACKs."""
        return [one.answered_us for one in self.answers if one.status == ACCEPTED]

    @property
    def unacked_s(self) -> float:
        """Return the longest time without an ACK, also one that has not ended."""
        return longest_gap([self.began_us, *self.acks_us, self._until_us]) / 1e6

    @property
    def statuses(self) -> Counter[int]:
        """Return the number of answers by status; 0: none."""
        return Counter(one.status for one in self.answers)


def now_us() -> int:
    return time.time_ns() // 1_000


def test_acks_continue_within_6_s_after_each_kill_of_a_broker_and_nothing_is_lost(box: Box):
    kills_us: list[int] = []
    admin = broker_admin(box.env["PENSTOCK_KAFKA"])

    def has_all_copies() -> bool:
        topics = admin.list_topics(timeout=10).topics.values()
        return all(len(one.isrs) == len(one.replicas) for topic in topics for one in topic.partitions.values())

    def kill_in_turns() -> None:
        for broker in itertools.islice(itertools.cycle(BROKERS), max(KILLS, len(BROKERS))):
            until(has_all_copies, "each record has all its copies", UP_S)
            time.sleep(BETWEEN_S)
            kills_us.append(now_us())
            box.wait_ready(broker, not_pid=box.kill(broker))

    outage = Outage(box, kill_in_turns)
    pauses = pauses_after(kills_us, outage.acks_us)
    log.info("no ACK for %s", summary_of(pauses))
    assert max(pauses) < AFTER_KILL_S, outage.statuses


def test_rolling_restart_of_all_brokers_under_load_loses_nothing(box: Box):
    def restart_each() -> None:
        for broker in BROKERS:
            box.wait_ready(broker, not_pid=box.kill(broker, signal.SIGTERM))

    outage = Outage(box, restart_each)
    assert outage.unacked_s < ACKED_AGAIN_S, outage.statuses


def test_without_enough_copies_ingest_refuses_with_503_and_loses_nothing(box: Box):
    stopped: list[int] = []

    def stop_two() -> None:
        pids = [box.pid(broker) for broker in BROKERS[1:]]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        stopped.append(now_us())
        try:
            time.sleep(STOPPED_S)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    outage = Outage(box, stop_two)
    assert outage.statuses.keys() == {ACCEPTED, 503}
    (began_us,) = stopped
    early = [at_us for at_us in outage.acks_us if began_us + IN_FLIGHT_S * 1e6 < at_us < outage.ended_us]
    assert early == [], "an ACK needs two copies"
    assert min(at_us for at_us in outage.acks_us if at_us > outage.ended_us) < outage.ended_us + BACK_S * 1e6
