"""`python -m dataplane.mirror`: copies topics from PENSTOCK_KAFKA to PENSTOCK_STANDBY_KAFKA until it is stopped."""

import logging
import signal
import sys
import threading
from typing import Final

from confluent_kafka import KafkaException

from dataplane.mirror.clusters import MirrorAddresses, MirrorCluster, first_line, mirror_addresses
from dataplane.mirror.copier import Copier
from dataplane.mirror.positions import MirrorError
from dataplane.mirror.topics import begin_copies, ensure_topics
from dataplane.mirror.watcher import PROMOTED, MirrorWatcher
from dataplane.runtime.garbage import collect_rarely
from dataplane.runtime.telemetry.logs import log_as_json
from dataplane.runtime.telemetry.metrics_registry import MetricsRegistry

log = logging.getLogger(__name__)

LONGEST_PAUSE_S: Final = 10.0


class RegionMirror:
    """Sessions of copying, one after the other: an error ends one, and the next goes on where the copies end."""

    def __init__(self, addresses: MirrorAddresses) -> None:
        self._active, self._standby = MirrorCluster(addresses.active), MirrorCluster(addresses.standby)
        self.watcher = MirrorWatcher(addresses)

    def run(self, ended: threading.Event) -> None:
        """Copy until the event is set. Without a cluster, wait for it."""
        self.watcher.start()
        pause_s = 1.0
        try:
            while not ended.is_set():
                try:
                    self._copy(ended)
                    pause_s = 1.0
                except (KafkaException, MirrorError) as exc:
                    if first_line(exc) != self.watcher.problem:
                        log.error("the mirror waits: %s", first_line(exc))
                    self.watcher.problem = first_line(exc)
                    self.watcher.check()
                    ended.wait(pause_s)
                    pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        finally:
            self.watcher.close()

    def _copy(self, ended: threading.Event) -> None:
        """Run one session. Raises MirrorError, KafkaException."""
        records = self._standby.read_records()
        if records.promotion is not None:
            self.watcher.is_promoted = True
            raise MirrorError(PROMOTED)
        layouts = self._active.layouts()
        ensure_topics(layouts, self._standby)
        copies = begin_copies(layouts, self._active, self._standby, records)
        copier = Copier(self._active, self._standby, copies)
        self.watcher.follow(layouts, copies)
        log.info("copying %d topics", len(layouts))
        try:
            while not (ended.is_set() or self.watcher.has_new_layout or self.watcher.is_promoted):
                copier.copy()
                self.watcher.check()
            copier.flush()
        finally:
            copier.close()


def main() -> int:
    """Mirror until SIGTERM."""
    log_as_json(process="mirror")
    collect_rarely()
    mirror, registry, ended = RegionMirror(mirror_addresses()), MetricsRegistry(), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    registry.reads(mirror.watcher.readings)
    registry.serve()
    mirror.run(ended)
    return 0


if __name__ == "__main__":
    sys.exit(main())
