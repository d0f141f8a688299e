"""Copies as peek steps would have shown them."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from dataplane.ledger.meta import Meta
from dataplane.ledger.peek import Peek
from mgmt.tail import Copy

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)


def copy_at(offset: int, body: Any = None, *, pipe: str = "p", step: str = "here", raw: bytes | None = None) -> Copy:
    """The copy of a message at an offset of the tail topic."""
    at_us = int(AT.timestamp() * 1_000_000)
    meta = Meta(1, f"id-{offset}", pipe, 1, "shop", at_us, at_us, 0, position=offset)
    return Copy(offset, AT, Peek(meta, "normalize", step), msgspec.json.encode(body) if raw is None else raw)
