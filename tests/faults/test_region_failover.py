"""The active Kafka cluster dies under traffic: the standby one serves the pipe, and each event is accounted for."""

import json
import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME
from confluent_kafka.admin import NewTopic

from dataplane.ledger.bins import Bin
from dataplane.mirror.clusters import DELIVERY_S
from dataplane.mirror.positions import GroupOffset
from dataplane.mirror.refusals import SAME_CLUSTER, SILENT_US
from dataplane.names import LANE_KINDS, lane_group, output_topic
from tests.support.broker import Broker
from tests.support.cluster import Cluster
from tests.support.kafka import admin_producer
from tests.support.lane_plane import LanePlane
from tests.support.patience import until
from tests.support.promoted_plane import PromotedPlane
from tests.support.sender import Sender
from tests.support.topic_reader import read_topic
from tests.support.two_regions import TwoRegions, running_brokers

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
RATE: Final = 500
PAUSED_S: Final = 0.7  # the mirror stands still before the cluster dies, so that some events are not mirrored
SERVED_S: Final = 60.0
WAITING: Final = 50  # events whose destination fails until after the failover


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


def make_waiting_events(plane: LanePlane) -> set[str]:
    """Send events to a destination that fails, so that they wait for their retries; return their ids."""
    plane.receiver.answers["/waiting"] = 503
    key = plane.add_pipe("waiting", {"crm": {"url": plane.receiver.url("/waiting"), "retry": {"local_tries": 1}}})
    answers = [plane.post(key, b'{"n":%d}' % number) for number in range(WAITING)]
    assert {status for status, _, _ in answers} == {202}
    retry_in = plane.cluster.topics["retry-in"].name
    until(lambda: sum(1 for _ in read_topic(plane.cluster.kafka, retry_in, 4)) >= WAITING, "they wait for a retry", 60)
    return {json.loads(body)["id"] for _, _, body in answers}


def accepted(plane: LanePlane) -> set[str]:
    """Return the ids of the events that the destination accepted at last."""
    return {one.id for one in plane.receiver.got["/waiting"] if one.answered == 204}


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_killed_cluster_is_replaced_within_a_minute_and_unmirrored_events_are_named(regions: Regions):
    plane, link = regions.plane, regions.link
    key = plane.add_pipe("drill", {"crm": {"url": plane.receiver.url("/drill")}})
    waiting = make_waiting_events(plane)
    link.wait_mirrored()
    with plane.sender(key, RATE) as sender:
        until(lambda: len(sender.acked) > 5 * RATE, "traffic flows", 120)
        until(lambda: link.progress().checkpoint_us, "committed offsets are mirrored")
        behind_s = time.time() - link.progress().complete_us / 1e6
        os.kill(link.mirror.pid, signal.SIGSTOP)
        time.sleep(PAUSED_S)
        plane.kill()
        killed_s = time.monotonic()
        os.kill(link.mirror.pid, signal.SIGCONT)
        before = len(sender.acked)

        planned = link.region("failover", "--dry-run")
        assert planned.returncode == 0, planned.stderr
        assert "does not respond" in planned.stdout
        assert link.records().promotion is None, "a plan changes nothing"
        done = link.region("failover")
        assert done.returncode == 0, done.stderr
        promoted_s = time.monotonic() - killed_s
        plane.receiver.answers["/waiting"] = 204
        successor = PromotedPlane(regions.var / "promoted", plane, regions.standby)
        known = {acked.id for acked in sender.acked[:before]}

        def is_served() -> bool:
            new = {acked.id for acked in sender.acked[before:]} - known
            return bool(new & delivered(plane).keys())

        until(is_served, "an event that the standby cluster took is delivered", SERVED_S)
        served_s = time.monotonic() - killed_s
        until(lambda: len(sender.acked) > before + 3 * RATE, "traffic flows again", 120)
    try:
        check_each_event(regions, successor, sender)
        until(lambda: waiting <= accepted(plane), "what waited for a retry is delivered", 180)
        log.info("behind %.1f s; promoted after %.1f s, served after %.1f s", behind_s, promoted_s, served_s)
    finally:
        successor.kill()


def check_each_event(regions: Regions, successor: PromotedPlane, sender: Sender) -> None:
    plane, link = regions.plane, regions.link
    regions.plane.broker.start()  # its log is readable again, its processes stay away
    report = link.region("unmirrored", after_failover=True)
    assert report.returncode == 0, report.stderr
    unmirrored = {line["id"] for line in lines(report.stdout)}
    acked = {one.id for one in sender.acked}
    assert unmirrored, "the mirror was paused before the cluster died"
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
    log.info("acked %s, unmirrored %s, lost %s, repeats %s", len(acked), len(unmirrored), len(lost), repeats)


def test_planned_move_and_return_keep_every_event_at_its_offset(tmp_path: Path):
    with running_brokers(tmp_path) as brokers, ExitStack() as ending:
        cluster = Cluster(brokers[0].address, cell="moved", partitions=2)
        cluster.make_cluster_topics()
        cluster.make_cell_topics(LANE_KINDS)
        ingest, group = cluster.topics["ingest"].name, lane_group("moved", "process")
        append_time = {"message.timestamp.type": "LogAppendTime"}
        timed = output_topic("pipe_moved", "crm")
        cluster.admin.create_topics([NewTopic(timed, 1, 1, config=append_time)])[timed].result()
        send(brokers[0], timed, 5)
        time.sleep(1)  # so that a copy has another time, unless it keeps that of its original
        send(brokers[0], ingest, 200)
        there = TwoRegions(*brokers, tmp_path)
        ending.callback(there.close)
        there.wait_mirrored()
        there.active.commit(group, {(ingest, 0): GroupOffset(60)})
        committed = partial(there.standby.committed, group, [(ingest, 0)])
        until(lambda: committed()[ingest, 0].offset == 60, "the committed offset is mirrored")
        assert there.standby.layouts()[timed].config == {"message.timestamp.type": "CreateTime"}
        shown = there.region("status")
        assert shown.returncode == 0, shown.stderr
        assert f"standby cluster  {there.standby.address.servers}" in shown.stdout
        moved = there.region("failover")
        assert moved.returncode == 0, moved.stderr
        assert there.region("failover").returncode == 1, "it is the active one already"
        assert there.region("unmirrored", after_failover=True).stdout == ""
        named = tmp_path / "named.jsonl"
        written = there.region("unmirrored", "--to", str(named), after_failover=True)
        assert written.returncode == 0, written.stderr
        assert named.read_text() == ""
        times = [[m.timestamp() for m in read_topic(one.address, timed, 1)] for one in brokers]
        assert times[0][0][0] == TIMESTAMP_LOG_APPEND_TIME
        assert [at for _, at in times[0]] == [at for _, at in times[1]], "each copy keeps the time of its original"
        assert there.standby.layouts()[timed].config == append_time, "new records get that of the broker"
        send(brokers[1], ingest, 50)

        left = tmp_path / "unmirrored.jsonl"
        planned = there.region("failback", "--unmirrored", str(left), after_failover=True)
        assert planned.returncode == 0, planned.stderr
        assert ingest in there.active.partitions(), "without --delete-topics it only reports"
        emptied = there.region("failback", "--unmirrored", str(left), "--delete-topics", after_failover=True)
        assert emptied.returncode == 0, emptied.stderr
        assert left.read_text() == ""
        left.write_text("named before")
        again = there.region("failback", "--unmirrored", str(left), "--delete-topics", after_failover=True)
        assert "exists already" in again.stderr
        assert left.read_text() == "named before"
        until(lambda: not there.active.partitions(), "the former cluster is empty")
        there.mirror.stop()

        back = TwoRegions(*brokers[::-1], tmp_path)
        ending.callback(back.close)
        back.wait_mirrored()
        returned = back.region("failover")
        assert returned.returncode == 0, returned.stderr
        words = ("failback", "--unmirrored", str(tmp_path / "second.jsonl"), "--delete-topics")
        mistaken = back.region(*words)  # with the variables of the time before the return
        assert "Exchange the variables" in mistaken.stderr
        assert ingest in back.standby.partitions(), "the active cluster keeps its topics"
        first, second = (
            {(m.partition(), m.offset()): m.value() for m in read_topic(one.address, ingest, 2)} for one in brokers
        )
        assert first == second
        assert len(first) == 250


def test_mirror_that_was_paused_writes_nothing_to_the_promoted_cluster(tmp_path: Path):
    with running_brokers(tmp_path) as brokers, ExitStack() as ending:
        cluster = Cluster(brokers[0].address, cell="paused", partitions=2)
        cluster.make_cluster_topics()
        cluster.make_cell_topics(LANE_KINDS)
        ingest = cluster.topics["ingest"].name
        link = TwoRegions(*brokers, tmp_path)
        ending.callback(link.close)
        link.wait_mirrored()
        until(lambda: link.progress().checkpoint_us, "the first copy is complete")
        ending.callback(os.kill, link.mirror.pid, signal.SIGCONT)
        for _ in range(10):  # it is stopped in the middle of copying
            send(brokers[0], ingest, 10_000)
        os.kill(link.mirror.pid, signal.SIGSTOP)
        assert ends(link, ingest) < 100_000
        time.sleep(SILENT_US / 1e6 + 1)
        refused = link.region("failover", "--accept-loss")
        assert "--mirror-is-dead" in refused.stderr
        assert link.records().promotion is None
        done = link.region("failover", "--accept-loss", "--mirror-is-dead")
        assert done.returncode == 0, done.stderr
        promoted = ends(link, ingest)
        os.kill(link.mirror.pid, signal.SIGCONT)
        until(lambda: link.progress().state == "stopped", "the mirror sees the promotion", 60, seen=link.progress)
        time.sleep(DELIVERY_S)
        assert ends(link, ingest) == promoted


def ends(link: TwoRegions, topic: str) -> int:
    return sum(link.standby.ends([(topic, 0), (topic, 1)]).values())


def test_mirror_that_restarts_without_the_active_cluster_keeps_what_a_failover_needs(tmp_path: Path):
    with running_brokers(tmp_path) as brokers, ExitStack() as ending:
        cluster = Cluster(brokers[0].address, cell="restarted", partitions=1)
        cluster.make_cluster_topics()
        cluster.make_cell_topics(LANE_KINDS)
        link = TwoRegions(*brokers, tmp_path)
        ending.callback(link.close)
        link.wait_mirrored()
        until(lambda: link.progress().checkpoint_us, "the first copy is complete")
        brokers[0].kill()
        link.mirror.kill()
        before = link.progress()
        link.mirror.start()
        until(lambda: link.progress().at_us > before.at_us, "the new process reports", seen=link.progress)
        now = link.progress()
        assert (now.checkpoint_us, now.active_id, now.stored) == (before.checkpoint_us, before.active_id, before.stored)
        assert now.state == "waiting"
        done = link.region("failover")
        assert done.returncode == 0, done.stderr


def test_empty_cluster_in_place_of_the_active_one_is_no_reason_to_fail_over(tmp_path: Path):
    with running_brokers(tmp_path) as brokers, ExitStack() as ending:
        cluster = Cluster(brokers[0].address, cell="wrong", partitions=1)
        cluster.make_cluster_topics()
        cluster.make_cell_topics(LANE_KINDS)
        link = TwoRegions(*brokers, tmp_path)
        ending.callback(link.close)
        link.wait_mirrored()
        until(lambda: link.progress().checkpoint_us, "the first copy is complete")
        other = Broker(tmp_path / "other")
        ending.callback(other.kill)
        other.start()
        wrong = link.region("failover", "--dry-run", active=other.address)
        assert "not the cluster that was mirrored" in wrong.stderr
        standby = link.standby.address.servers.replace("127.0.0.1", "localhost")
        same = link.region("failover", "--dry-run", "--accept-loss", active=standby)
        assert SAME_CLUSTER in same.stderr


def test_events_that_the_former_cluster_has_deleted_are_counted_and_not_passed_over(tmp_path: Path):
    with running_brokers(tmp_path) as brokers, ExitStack() as ending:
        cluster = Cluster(brokers[0].address, cell="deleted", partitions=1)
        cluster.make_cluster_topics()
        cluster.make_cell_topics(LANE_KINDS)
        ingest = cluster.topics["ingest"].name
        link = TwoRegions(*brokers, tmp_path)
        ending.callback(link.close)
        link.wait_mirrored()
        until(lambda: link.progress().checkpoint_us, "the first copy is complete")
        assert link.region("failover").returncode == 0
        send(brokers[0], ingest, 30)
        link.active.delete_before({(ingest, 0): 12})
        left = tmp_path / "left.jsonl"
        words = ("failback", "--unmirrored", str(left), "--delete-topics")
        refused = link.region(*words, after_failover=True)
        assert "12 more events cannot be named" in refused.stderr
        assert ingest in link.active.partitions()
        assert not left.exists()
        done = link.region(*words, "--accept-loss", after_failover=True)
        assert done.returncode == 0, done.stderr
        assert len(lines(left.read_text())) == 18


def send(broker: Broker, topic: str, count: int) -> None:
    producer = admin_producer({"bootstrap.servers": broker.address, "log_level": 3})
    for number in range(count):
        producer.produce(topic, str(number).encode(), str(number % 7))
    assert producer.flush(30) == 0
