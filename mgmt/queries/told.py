"""When the ledger was told of a message: its facts among the audit records since a moment, as far as a look goes."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import msgspec
from pyroaring import BitMap64

from dataplane.ledger.audit import Audit, decode_audit
from dataplane.ledger.facts import FactKey
from dataplane.names import AUDIT_TOPIC
from mgmt.queries.records import messages_since

AUDIT_PARTITIONS = 4


def told_at(pipe_id: str, position: int, facts: Collection[FactKey], since: datetime) -> dict[FactKey, datetime]:
    """The checkpoint in which each of these facts was told first: at most a fifth of a second after it was so.

    What was told long after `since` is not found. Raises RecordsAway.
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


def _read(message: Any) -> Audit | None:
    try:
        return decode_audit(message.value() or b"")
    except msgspec.DecodeError:
        return None
