"""Lease of the mirror on the standby cluster: it expires, so that a mirror that was stopped cannot write later.

A failover takes a mirror for dead only after a silence that is longer than the lease and the delivery timeout of copies
together. A process that was paused, or cut off, therefore finds its lease expired when it continues.
"""

import logging
import threading
import time
import uuid
from typing import Final

from confluent_kafka import Consumer, KafkaException

from dataplane.mirror.checked_thread import CheckedThread
from dataplane.mirror.clusters import ClusterAddress, MirrorCluster, first_line
from dataplane.mirror.positions import MirrorError
from dataplane.mirror.records import LEASE_KEY, MirrorRecords
from dataplane.names import MIRROR_TOPIC

log = logging.getLogger(__name__)

LEASE_S: Final = 4.0
RENEW_S: Final = 1.0
LOOK_S: Final = 0.1
NO_LEASE: Final = "the mirror could not confirm for some seconds that the standby cluster is not promoted"


class MirrorLease:
    """Thread that writes a token to `penstock.mirror` and reads the topic up to it, time and again.

    No promotion precedes a token that was read, so one can only be younger than the token: the lease is valid for
    LEASE_S from the moment before the token was sent.

    is_promoted: the standby cluster has become the active one; the lease is not renewed any more
    """

    def __init__(self, standby: ClusterAddress) -> None:
        self._standby = MirrorCluster(standby)
        self._reader: Consumer | None = None
        self._records = MirrorRecords()
        self._token, self._sent_s = b"", 0.0
        self._until_s = 0.0
        self._ended = threading.Event()
        self._thread = CheckedThread("mirror-lease", self._renew)
        self.is_promoted = False

    @property
    def left_s(self) -> float:
        """Return for how many seconds the mirror may still write; 0 if it may not."""
        return max(0.0, self._until_s - time.monotonic())

    def require(self) -> None:
        """Raise MirrorError unless the mirror may write now."""
        if not self.left_s:
            raise MirrorError(NO_LEASE)

    def wait(self, ended: threading.Event, limit_s: float = 2 * LEASE_S) -> None:
        """Wait until the mirror may write. Raises MirrorError if it may not in time."""
        until_s = time.monotonic() + limit_s
        while not (self.left_s or ended.is_set() or self.is_promoted or time.monotonic() > until_s):
            ended.wait(LOOK_S)
        self.require()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop the thread."""
        self._ended.set()
        self._thread.join()
        if self._reader is not None:
            self._reader.close()
        self._standby.close()

    def check(self) -> None:
        """Raise the error that has ended the thread, if any."""
        self._thread.check()

    def _renew(self) -> None:
        error = ""
        while not (self._ended.wait(LOOK_S) or self.is_promoted):
            try:
                self._step()
            except KafkaException as exc:
                if first_line(exc) != error:
                    error = first_line(exc)
                    log.warning("the lease is not renewed: %s", error)

    def _step(self) -> None:
        if self._reader is None:
            if MIRROR_TOPIC not in self._standby.partitions():
                self._ended.wait(RENEW_S)  # the first session makes it
                return
            self._reader = self._standby.follow_records()
        if time.monotonic() >= self._sent_s + RENEW_S:
            self._token, self._sent_s = uuid.uuid4().bytes, time.monotonic()
            self._standby.store(LEASE_KEY, self._token)
        for message in self._reader.consume(1_000, LOOK_S):
            self._records.apply([message])
            if self._records.promotion is not None:
                self.is_promoted = True
                return
            if message.error() is None and message.key() == LEASE_KEY and message.value() == self._token:
                self._until_s = self._sent_s + LEASE_S
