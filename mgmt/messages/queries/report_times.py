"""Report times of a message's facts: a bounded search of the audit records since a given time."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import msgspec
from pyroaring import BitMap64

from dataplane.ledger.audit import AuditRecord, decode_audit
from dataplane.ledger.facts import FactKey
from dataplane.names import AUDIT_PARTITIONS, AUDIT_TOPIC
from mgmt.messages.queries.records import messages_since


def report_times_of(
    pipe_id: str, position: int, facts: Collection[FactKey], since: datetime
) -> dict[FactKey, datetime]:
    """Return the time of the checkpoint that first reported each of these facts, at most 0.2 s after the event itself.

    Facts reported long after `since` are not found. Raises RecordUnavailableError.
    """
    known: dict[FactKey, datetime] = {}
    if not facts:
        return known
    for message in messages_since(AUDIT_TOPIC, range(AUDIT_PARTITIONS), since):
        audit = _read(message)
        if audit is None:
            continue
        for fact in audit.facts:
            key = FactKey(fact.node, fact.fact, fact.detail, fact.child)
            if fact.pipe == pipe_id and key in facts and position in BitMap64.deserialize(fact.positions):
                known.setdefault(key, datetime.fromtimestamp(audit.at_us / 1e6, UTC))
        if len(known) == len(facts):
            break
    return known


def _read(message: Any) -> AuditRecord | None:
    try:
        return decode_audit(message.value() or b"")
    except msgspec.DecodeError:
        return None
