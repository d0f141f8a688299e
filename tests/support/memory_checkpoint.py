"""Dependencies of a Checkpointer, in memory: a producer that stores on demand, and committed offsets."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from dataplane.ledger.audit import AuditRecord, OffsetMark, decode_audit
from dataplane.names import AUDIT_TOPIC


class AuditOutbox:
    """Audit records in flight, as (token, value), the oldest first; `fails` is the error that `send` raises."""

    def __init__(self) -> None:
        self.under_way: list[tuple[Any, bytes]] = []
        self.stored: list[AuditRecord] = []
        self.fails: BaseException | None = None

    def send(self, topic: str, token: Any, *, value: bytes, key: bytes) -> None:
        assert (topic, key) == (AUDIT_TOPIC, b"c1")
        if self.fails is not None:
            raise self.fails
        self.under_way.append((token, value))

    def marks(self) -> list[OffsetMark]:
        return []

    def store(self) -> Any:
        """Store the oldest record in flight; return its token."""
        token, value = self.under_way.pop(0)
        self.stored.append(decode_audit(value))
        return token


class GroupOffsets:
    """Committed offsets and their notes by partition; offsets never go backwards."""

    def __init__(self) -> None:
        self.offsets: dict[int, tuple[int, str]] = {}
        self.commits: list[dict[int, tuple[int, str]]] = []
        self.is_away = False

    def commit(self, *, offsets: list[Any], **_how: Any) -> None:
        if self.is_away:
            raise KafkaException(KafkaError(KafkaError.REBALANCE_IN_PROGRESS))
        found = {place.partition: (place.offset, place.metadata) for place in offsets}
        for partition, (offset, _) in found.items():
            assert offset >= self.offsets.get(partition, (0, ""))[0], "a committed offset went backwards"
        self.commits.append(found)
        self.offsets |= found

    def written_by_another(self, found: Mapping[int, tuple[int, str]]) -> None:
        """Commit these offsets as another lane."""
        self.offsets |= found
