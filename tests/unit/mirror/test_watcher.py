"""Offsets that the watcher commits on the standby cluster, with clusters whose answers a test sets."""

import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from dataplane.mirror import watcher as module
from dataplane.mirror.clusters import ClusterAddress, MirrorAddresses, MirrorCluster
from dataplane.mirror.lease import MirrorLease
from dataplane.mirror.positions import GroupOffset, PartitionCopy
from dataplane.mirror.records import MirrorProgress
from dataplane.mirror.selection import TopicLayout
from dataplane.mirror.watcher import MirrorWatcher
from dataplane.names import PartitionKey, cell_topic, lane_group

INGEST, EGRESS = cell_topic("c1", "ingest", 1), cell_topic("c1", "egress", 1)
GROUP = lane_group("c1", "process")
ADDRESSES = MirrorAddresses(ClusterAddress("active:1", {}), ClusterAddress("standby:1", {}))


class FixedLease(MirrorLease):
    """Lease that a test gives and takes."""

    given_s = 10.0

    @property
    def left_s(self) -> float:
        return self.given_s


class Clusters:
    """Answers of both clusters, and what was committed on the standby one."""

    def __init__(self) -> None:
        self.partitions = {INGEST: 1}
        self.commits: list[str] = []
        self.reports: list[bytes] = []

    def ends(self, _cluster: MirrorCluster, places: Any) -> dict[PartitionKey, int]:
        return dict.fromkeys(places, 10)

    def committed(self, _cluster: MirrorCluster, _group: str, places: Any) -> dict[PartitionKey, GroupOffset]:
        return {place: GroupOffset(7) for place in places}

    def commit(self, _cluster: MirrorCluster, group: str, _offsets: Any) -> None:
        self.commits.append(group)

    def store(self, _cluster: MirrorCluster, _key: bytes, value: bytes) -> None:
        self.reports.append(value)


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> Clusters:
    clusters = Clusters()
    for name in ("ends", "committed", "commit", "store"):
        answer = getattr(clusters, name)
        monkeypatch.setattr(MirrorCluster, name, lambda *args, answer=answer: answer(*args))
    monkeypatch.setattr(MirrorCluster, "partitions", lambda _: clusters.partitions)
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    return clusters


@pytest.fixture
def lease() -> FixedLease:
    return FixedLease(ADDRESSES.standby)


@pytest.fixture
def watcher(clusters: Clusters, lease: FixedLease) -> Iterator[MirrorWatcher]:
    watcher = MirrorWatcher(ADDRESSES, lease)
    yield watcher
    watcher.close()


def follow(watcher: MirrorWatcher) -> None:
    copies = {(INGEST, 0): PartitionCopy((INGEST, 0), 10, is_exact=True)}
    watcher.follow("A", {INGEST: TopicLayout(INGEST, 1, 1, {})}, copies)


def wait_for(count: int, commits: list[str], limit_s: float = 5.0) -> None:
    until_s = time.monotonic() + limit_s
    while commits.count(GROUP) < count and time.monotonic() < until_s:
        time.sleep(0.01)


def test_offsets_that_do_not_change_are_committed_once(watcher: MirrorWatcher, clusters: Clusters):
    watcher.resume(None)
    follow(watcher)
    wait_for(2, clusters.commits, 0.5)
    assert clusters.commits.count(GROUP) == 1


def test_no_cut_is_taken_while_a_topic_is_new(watcher: MirrorWatcher, clusters: Clusters):
    clusters.partitions = {INGEST: 1, EGRESS: 1}  # outputs of what is committed may be there, and are not copied
    follow(watcher)
    watcher.resume(None)
    wait_for(1, clusters.commits, 0.5)
    assert clusters.commits == []
    assert watcher.has_new_layout


def test_each_session_commits_again_what_a_deleted_topic_has_lost(watcher: MirrorWatcher, clusters: Clusters):
    watcher.resume(None)
    follow(watcher)
    wait_for(1, clusters.commits)
    follow(watcher)
    wait_for(2, clusters.commits)
    assert clusters.commits.count(GROUP) == 2


def test_offsets_are_committed_again_before_brokers_forget_them(
    watcher: MirrorWatcher, clusters: Clusters, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "RECOMMIT_S", 0.05)
    watcher.resume(None)
    follow(watcher)
    wait_for(3, clusters.commits)
    assert clusters.commits.count(GROUP) >= 3


def test_nothing_is_committed_without_the_lease(watcher: MirrorWatcher, clusters: Clusters, lease: FixedLease):
    lease.given_s = 0.0
    watcher.resume(None)
    follow(watcher)
    wait_for(1, clusters.commits, 0.5)
    assert clusters.commits == []


def test_nothing_is_committed_once_a_session_has_ended_with_an_error(watcher: MirrorWatcher, clusters: Clusters):
    follow(watcher)
    watcher.problem = watcher.diverged = "the records differ"
    watcher.resume(None)
    wait_for(1, clusters.commits, 0.5)
    assert clusters.commits == []


def test_mirror_that_cannot_copy_reports_what_the_one_before_it_had_reached(clusters: Clusters):
    before = MirrorProgress("copying", "active:1", 1, 900, 800, stored={INGEST: {0: 5}}, active_id="A", diverged="x")
    watcher = MirrorWatcher(ADDRESSES, FixedLease(ADDRESSES.standby))
    watcher.resume(before)
    watcher.close()
    last = msgspec.json.decode(clusters.reports[-1], type=MirrorProgress)
    assert (last.complete_us, last.checkpoint_us, last.stored) == (900, 800, {INGEST: {0: 5}})
    assert (last.state, last.active_id, last.diverged) == ("stopped", "A", "x")
    assert last.at_us > 1
