"""A record on the `signals` topic of the cell c1, stored as the Observer does."""

from datetime import datetime
from typing import Final

from controlplane.observer.attempts import SuccessSampler
from controlplane.observer.batch import AuditBatch
from controlplane.observer.store import LedgerStore
from dataplane.names import cell_topic
from mgmt.models import AuditOffset

SIGNALS: Final = cell_topic("c1", "signals", 1)


class SignalMessage:
    """Record of one partition, as Kafka's client returns it."""

    def __init__(self, key: str, value: bytes, offset: int) -> None:
        self._key, self._value, self._offset = key, value, offset

    def topic(self) -> str:
        return SIGNALS

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return self._key.encode()

    def value(self) -> bytes:
        return self._value


def store_signals(key: str, values: list[bytes], now: datetime) -> None:
    """Store records of one key in one batch."""
    AuditOffset.objects.create(topic=SIGNALS, partition=0, next_offset=0)
    store = LedgerStore()
    store.offsets[SIGNALS, 0] = 0
    batch = AuditBatch(SuccessSampler(1))
    for offset, value in enumerate(values):
        batch.add(SignalMessage(key, value, offset))
    store.save(batch, maybe_sealed_before=0, now=now)
