"""Records that their topic rejects (too large, not authorized, topic missing): kept in order and retried. Pure.

While a topic rejects records, one record a second probes it; all others for it wait behind that one. When many wait,
the lane reads no more messages: this is the back-pressure, because none of the waiting records is settled.
"""

import logging
from collections import deque
from typing import Any, Final

from msgspec import Struct

from dataplane.ledger.meta import Headers

log = logging.getLogger(__name__)

PROBE_INTERVAL_S: Final = 1.0
MANY: Final = 1_000


class PendingRecord(Struct, eq=False):
    """One record as given to TrackedProducer.send, and the token to return when it is stored."""

    topic: str
    token: Any
    value: bytes | None
    key: bytes | None
    partition: int
    headers: Headers


class _RejectingTopic(Struct):
    """Topic that rejects records. `probe` is the record in flight that probes it."""

    why: str
    due_s: float
    records: deque[PendingRecord]
    probe: PendingRecord | None = None


class RejectedRecords:
    """Queues of records, one for each topic that rejects them."""

    def __init__(self) -> None:
        self._refusals: dict[str, _RejectingTopic] = {}
        self._released: list[PendingRecord] = []  # their topic accepts records again

    def takes(self, record: PendingRecord) -> bool:
        """Queue a record behind others of its topic and return True; return False if it may be produced now."""
        refusal = self._refusals.get(record.topic)
        if refusal is not None:
            refusal.records.append(record)
        return refusal is not None

    def requeue(self, record: PendingRecord, why: str, now_s: float) -> None:
        """Queue a record that its topic has rejected."""
        refusal = self._refusals.get(record.topic)
        if refusal is None:
            log.error("topic %s refuses records: %s", record.topic, why)
            refusal = self._refusals[record.topic] = _RejectingTopic(why, now_s + PROBE_INTERVAL_S, deque())
        if refusal.probe is record:
            refusal.why, refusal.due_s, refusal.probe = why, now_s + PROBE_INTERVAL_S, None
            refusal.records.appendleft(record)
        else:
            refusal.records.append(record)

    def stored(self, record: PendingRecord) -> None:
        """Note that a record is stored; if it was the probe, release the records behind it."""
        refusal = self._refusals.get(record.topic)
        if refusal is not None and refusal.probe is record:
            log.info("topic %s accepts records again", record.topic)
            self._released += self._refusals.pop(record.topic).records

    def due(self, now_s: float) -> list[PendingRecord]:
        """Return the records to produce now: released ones, and the next probe of each rejecting topic."""
        due, self._released = self._released, []
        for refusal in self._refusals.values():
            if refusal.probe is None and now_s >= refusal.due_s:
                refusal.probe = refusal.records.popleft()
                due.append(refusal.probe)
        return due

    @property
    def is_full(self) -> bool:
        """True if at least MANY records wait."""
        return sum(len(refusal.records) for refusal in self._refusals.values()) >= MANY

    @property
    def words(self) -> str:
        """Text with the topics that reject records, the reason, and the number of waiting records."""
        return "; ".join(
            f"{topic} refuses records: {refusal.why} ({len(refusal.records) + bool(refusal.probe)} wait)"
            for topic, refusal in self._refusals.items()
        )
