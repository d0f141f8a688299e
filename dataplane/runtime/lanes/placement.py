"""Partition of a record that follows a message to another topic. Pure."""

from typing import Any

from dataplane.ledger.meta import MessageMeta
from dataplane.ledger.units import place_of


def by_key_or_origin(meta: MessageMeta, key: bytes | None, partitions: int, *, in_order: bool) -> dict[str, Any]:
    """Return the key, and the partition unless the key determines it: always the same for a unit.

    in_order: the destination keeps the order of a key, so all messages of a key use one partition. Otherwise a message
              uses the partition of its event: that of its key at ingest or, for a spread key, one of all partitions.
              So does each copy that a replay made, because copies have no order.
    """
    if key is not None and in_order and not meta.replay:
        return {"key": key}
    return at_origin(meta, key, partitions)


def at_origin(meta: MessageMeta, key: bytes | None, partitions: int) -> dict[str, Any]:
    """Return the number of the partition of the message's event, and its key."""
    partition = place_of(meta.position).partition % partitions
    return {"partition": partition} if key is None else {"partition": partition, "key": key}
