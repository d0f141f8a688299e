"""Thread that measures how far the mirror is behind, commits consistent cuts, and reports on `penstock.mirror`."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Literal

import msgspec
from confluent_kafka import KafkaException

from dataplane.mirror.checked_thread import CheckedThread
from dataplane.mirror.clusters import MirrorAddresses, MirrorCluster, first_line
from dataplane.mirror.lease import MirrorLease
from dataplane.mirror.positions import ConsistentCut, GroupOffset, PartitionCopy, TopicDelay, by_topic, new_offsets
from dataplane.mirror.records import PROGRESS_KEY, MirrorProgress, TopicProgress
from dataplane.mirror.selection import TopicLayout, groups_of, metric_label
from dataplane.names import MIRROR_TOPIC, PartitionKey
from dataplane.runtime.clock import SteadyClock
from dataplane.runtime.telemetry.metrics_registry import MetricReading

log = logging.getLogger(__name__)

PROMOTED: Final = "the standby cluster was promoted: nothing is copied to it any more"
LOOK_S: Final = 0.25
REPORT_S: Final = 1.0
LAYOUT_S: Final = 5.0  # interval at which new topics and partitions are searched for
RECOMMIT_S: Final = 3_600.0  # brokers forget the offsets of groups without members (offsets.retention.minutes)


class MirrorWatcher:
    """Figures, checkpoints and progress of one mirror. `follow` names the session that it watches.

    has_new_layout: the active cluster has topics or partitions that the session does not copy
    problem:        why no session runs; "" while one does
    diverged:       why the standby cluster has other records than the active one
    """

    def __init__(self, addresses: MirrorAddresses, lease: MirrorLease) -> None:
        self._addresses, self._lease = addresses, lease
        self._active, self._standby = MirrorCluster(addresses.active), MirrorCluster(addresses.standby)
        self._clock = SteadyClock()
        self._ended = threading.Event()
        self._thread = CheckedThread("mirror-watcher", self._watch)
        self._layouts: Mapping[str, TopicLayout] = {}
        self._copies: Mapping[PartitionKey, PartitionCopy] = {}
        self._delays: dict[str, TopicDelay] = {}
        self._cut: ConsistentCut | None = None
        self._committed: dict[str, dict[PartitionKey, GroupOffset]] = {}
        self._checkpoint_us = self._copied = 0
        self._active_id = ""
        self._before: MirrorProgress | None = None  # of the mirror that ran before, until a session runs
        self._due: dict[Callable[[], None], float] = {}
        self._error = ""  # of the last look
        self._reported = ""
        self.problem, self.diverged = "starting", ""
        self.has_new_layout = False

    def resume(self, progress: MirrorProgress | None) -> None:
        """Start the thread, once: a mirror that cannot copy reports what the one before it had reached."""
        if not self._thread.was_started:
            self._before = progress
            if progress is not None:
                self.diverged, self._checkpoint_us = progress.diverged, progress.checkpoint_us
            self._thread.start()

    def follow(
        self, active_id: str, layouts: Mapping[str, TopicLayout], copies: Mapping[PartitionKey, PartitionCopy]
    ) -> None:
        """Watch a new session, which has compared the ends of both clusters."""
        self._copied += sum(copy.copied for copy in self._copies.values())
        now_us = self._clock.now_us()
        copied = [name for name, layout in layouts.items() if layout.is_copied]
        self._delays = {name: self._delays.get(name) or TopicDelay(now_us) for name in copied}
        self._active_id, self._layouts, self._copies, self._cut = active_id, layouts, copies, None
        self._committed.clear()  # a topic that was deleted on the standby cluster has lost its offsets
        self._before, self.has_new_layout, self.problem, self.diverged = None, False, "", ""

    def close(self) -> None:
        """Stop the thread, and report a last time that the mirror has stopped."""
        self._ended.set()
        self._thread.join()
        if self._thread.was_started:
            try:
                self._report("stopped")
            except KafkaException as exc:
                log.warning("the last report is not stored: %s", first_line(exc))
        self._active.close()
        self._standby.close()

    def readings(self) -> Iterator[MetricReading]:
        """Yield the metrics of the mirror."""
        now_us, behind, seconds = self._clock.now_us(), dict[str, int](), dict[str, float]()
        for name, delay in list(self._delays.items()):
            label = metric_label(name)
            behind[label] = behind.get(label, 0) + delay.behind
            seconds[label] = max(seconds.get(label, 0.0), delay.behind_s(now_us))
        for label, count in behind.items():
            yield MetricReading("penstock_mirror_behind_messages", count, (label,))
            yield MetricReading("penstock_mirror_behind_seconds", seconds[label], (label,))
        yield MetricReading("penstock_mirror_records_total", self._total())
        yield MetricReading("penstock_mirror_failing", 1 if self.problem or self._error else 0)
        if self._checkpoint_us:
            yield MetricReading("penstock_mirror_checkpoint_age_seconds", (now_us - self._checkpoint_us) / 1e6)

    def check(self) -> None:
        """Raise the error that has ended the thread, if any."""
        self._thread.check()

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_S):
            error = ""
            for step in self._steps():
                try:
                    step()
                except KafkaException as exc:
                    error = first_line(exc)
                    break  # the next step would wait for the same cluster, and a promotion would be seen late
            if error != self._error:
                log.warning("problem with the clusters: %s", error or "none any more")
            self._error = error

    def _steps(self) -> Iterable[Callable[[], None]]:
        """Return what there is to do. A promoted cluster gets one last report, and never again a committed offset."""
        if self._lease.is_promoted:
            return () if self._reported == PROMOTED else (self._report_copying,)
        return self._report_copying, self._look, self._checkpoint, self._compare_layouts

    def _is_due(self, step: Callable[[], None], interval_s: float) -> bool:
        now_s = time.monotonic()
        if now_s < self._due.get(step, 0.0):
            return False
        self._due[step] = now_s + interval_s
        return True

    def _look(self) -> None:
        copies, delays = self._copies, self._delays
        now_us = self._clock.now_us()
        ends = self._active.ends(copies)
        stored = _stored(copies)
        for name, delay in delays.items():
            delay.look(now_us, {place: end for place, end in ends.items() if place[0] == name}, stored)

    def _checkpoint(self) -> None:
        """Commit the offsets of the last cut once all copies have reached its ends, and take the next one."""
        copies = self._copies
        if self.problem:  # what was copied may be gone: the next session compares the ends
            return
        if self._is_due(self._checkpoint, RECOMMIT_S):
            self._committed.clear()
        if self._cut is not None and self._cut.is_complete(_stored(copies)):
            for group, offsets in new_offsets(self._cut.committed, self._committed).items():
                if not self._lease.left_s:
                    return
                self._standby.commit(group, offsets)
                self._committed.setdefault(group, {}).update(offsets)
            self._checkpoint_us, self._cut = self._cut.at_us, None
        if self._cut is None and copies:
            now_us = self._clock.now_us()
            groups = groups_of(self._layouts.values())
            committed = {group: self._active.committed(group, places) for group, places in groups.items()}
            # An output of what is committed may be in a topic or partition that the session does not copy.
            self._look_for_new_layout()
            if not self.has_new_layout:
                self._cut = ConsistentCut(committed, self._active.ends(copies), now_us)

    def _compare_layouts(self) -> None:
        if self._layouts and self._is_due(self._compare_layouts, LAYOUT_S):
            self._look_for_new_layout()

    def _look_for_new_layout(self) -> None:
        partitions = {name: count for name, count in self._active.partitions().items() if name != MIRROR_TOPIC}
        self.has_new_layout = partitions != {name: layout.partitions for name, layout in self._layouts.items()}

    def _report_copying(self) -> None:
        if self._is_due(self._report_copying, REPORT_S):
            problem = self.problem  # the other thread may change it
            self._report("stopped" if problem == PROMOTED else "waiting" if problem else "copying")
            self._reported = problem

    def _report(self, state: Literal["copying", "waiting", "stopped"]) -> None:
        self._standby.store(PROGRESS_KEY, msgspec.json.encode(self._progress(state)))

    def _progress(self, state: Literal["copying", "waiting", "stopped"]) -> MirrorProgress:
        now_us, error = self._clock.now_us(), self.problem or self._error
        if self._before is not None:
            return msgspec.structs.replace(
                self._before, state=state, at_us=now_us, copied=0, error=error, diverged=self.diverged
            )
        delays = dict(self._delays)
        known = [delay.complete_us for delay in delays.values()]
        return MirrorProgress(
            state,
            self._addresses.active.servers,
            now_us,
            complete_us=min(known, default=0),
            checkpoint_us=self._checkpoint_us,
            topics={name: TopicProgress(delay.behind, delay.complete_us) for name, delay in delays.items()},
            stored=by_topic(_stored(self._copies), delays),
            copied=self._total(),
            error=error,
            active_id=self._active_id,
            diverged=self.diverged,
        )

    def _total(self) -> int:
        return self._copied + sum(copy.copied for copy in self._copies.values())


def _stored(copies: Mapping[PartitionKey, PartitionCopy]) -> dict[PartitionKey, int]:
    return {place: copy.stored for place, copy in copies.items()}
