"""Copies as peek steps would have published them."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from dataplane.ledger.meta import MessageMeta
from dataplane.ledger.peek import PeekMeta
from mgmt.tail import PeekedCopy

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)


def copy_at(
    offset: int, body: Any = None, *, pipe: str = "p", step: str = "here", raw: bytes | None = None
) -> PeekedCopy:
    """Return the copy of a message at an offset of the tail topic."""
    at_us = int(AT.timestamp() * 1_000_000)
    meta = MessageMeta(1, f"id-{offset}", pipe, 1, "shop", at_us, at_us, 0, position=offset)
    return PeekedCopy(offset, AT, PeekMeta(meta, "normalize", step), msgspec.json.encode(body) if raw is None else raw)
