"""`python -m dataplane.mirror`: copies topics from PENSTOCK_KAFKA to PENSTOCK_STANDBY_KAFKA until it is stopped."""

import logging
import signal
import sys
import threading
from typing import Final

from confluent_kafka import KafkaException

from dataplane.mirror.clusters import MirrorAddresses, MirrorCluster, first_line, mirror_addresses
from dataplane.mirror.copier import Copier
from dataplane.mirror.lease import MirrorLease
from dataplane.mirror.positions import DivergedError, MirrorError
from dataplane.mirror.records import MirrorProgress
from dataplane.mirror.refusals import SAME_CLUSTER
from dataplane.mirror.topics import begin_copies, ensure_topics
from dataplane.mirror.watcher import PROMOTED, MirrorWatcher
from dataplane.runtime.garbage import collect_rarely
from dataplane.runtime.telemetry.logs import log_as_json
from dataplane.runtime.telemetry.metrics_registry import MetricsRegistry

log = logging.getLogger(__name__)

LONGEST_PAUSE_S: Final = 10.0


class RegionMirror:
    """Sessions of copying, one after the other: an error ends one, and the next continues where the copies end."""

    def __init__(self, addresses: MirrorAddresses, ended: threading.Event) -> None:
        self._active, self._standby = MirrorCluster(addresses.active), MirrorCluster(addresses.standby)
        self._ended, self._lease = ended, MirrorLease(addresses.standby)
        self.watcher = MirrorWatcher(addresses, self._lease)

    def run(self) -> None:
        """Copy until the event is set. Without a cluster, wait for it."""
        self._lease.start()
        pause_s = 1.0
        try:
            while not self._ended.is_set():
                try:
                    self._copy()
                    pause_s = 1.0
                except (KafkaException, MirrorError) as exc:
                    self._note(exc)
                    self._check_threads()
                    self._ended.wait(pause_s)
                    pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        finally:
            self.watcher.close()
            self._lease.close()

    def _note(self, exc: KafkaException | MirrorError) -> None:
        problem = first_line(exc)
        if problem != self.watcher.problem and not self._ended.is_set():
            log.error("the mirror waits: %s", problem)
        if isinstance(exc, DivergedError):
            self.watcher.diverged = problem
        self.watcher.problem = problem

    def _copy(self) -> None:
        """Run one session. Raises MirrorError, KafkaException."""
        records = self._standby.read_records()
        self.watcher.resume(records.progress)
        if records.promotion is not None:
            self._lease.is_promoted = True
            raise MirrorError(PROMOTED)
        active_id = self._active.id()
        check_identities(active_id, self._standby.id(), records.progress)
        layouts = self._active.layouts()
        ensure_topics(layouts, self._standby)
        self._lease.wait(self._ended)
        copies = begin_copies(layouts, self._active, self._standby, records, self._require)
        copier = Copier(self._active, self._standby, copies, self._lease)
        self.watcher.follow(active_id, layouts, copies)
        log.info("copying %d topics", len(layouts))
        try:
            while not (self._ended.is_set() or self.watcher.has_new_layout or self._lease.is_promoted):
                copier.copy()
                self._check_threads()
            copier.flush()
        finally:
            copier.close()

    def _check_threads(self) -> None:
        self.watcher.check()
        self._lease.check()

    def _require(self) -> None:
        """Raise MirrorError if nothing may be written any more."""
        if self._ended.is_set():
            raise MirrorError("the mirror ends")
        self._lease.require()


def check_identities(active_id: str, standby_id: str, progress: MirrorProgress | None) -> None:
    """Raise MirrorError if both clusters are one, or the standby cluster is the copy of another one. Pure."""
    if active_id == standby_id:
        raise MirrorError(SAME_CLUSTER)
    if progress is not None and progress.active_id not in ("", active_id):
        raise MirrorError("the standby cluster is a copy of another cluster than PENSTOCK_KAFKA")


def main() -> int:
    """Mirror until SIGTERM."""
    log_as_json(process="mirror")
    collect_rarely()
    ended = threading.Event()
    mirror, registry = RegionMirror(mirror_addresses(), ended), MetricsRegistry()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    registry.reads(mirror.watcher.readings)
    registry.serve()
    mirror.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
