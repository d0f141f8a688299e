"""Dedup decisions: the identity of an event, and which of two events with the same identity passes. Pure."""

from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

from dataplane.ledger.meta import MessageMeta
from dataplane.spec.dedup import DedupSpec
from dataplane.stages.paths import MISSING, compile_path, get

_encode = msgspec.json.Encoder(order="sorted").encode
DIGEST_BYTES: Final = 16


class DedupIdentity:
    """Identity of a pipe's events: the values at the configured paths, or the sender's ids of the deliveries."""

    def __init__(self, dedup: DedupSpec) -> None:
        self._paths = [compile_path(path) for path in dedup.paths]
        self.by_key = bool(dedup.by)
        self.window_us = dedup.window_s * 1_000_000

    def of_key(self, meta: MessageMeta) -> bytes | None:
        """Return a 16-byte digest of pipe, source and the sender's id of the delivery; None if it has none."""
        if not meta.idempotency_key:
            return None
        return _digest([meta.pipe, {"source": meta.source, "key": meta.idempotency_key}])

    def of(self, pipe: str, body: Any) -> bytes | None:
        """Return a 16-byte digest of the pipe and the values at the paths; None if a path has no value or null."""
        values = [get(body, path) for path in self._paths]
        if any(value is MISSING or value is None for value in values):
            return None
        return _digest([pipe, *values])


def _digest(parts: list[Any]) -> bytes:
    return blake2b(_encode(parts), digest_size=DIGEST_BYTES).digest()


class SeenEvent(NamedTuple):
    """An event that passed: its position and its ingest time, in microseconds since 1970."""

    position: int
    ingest_us: int


class DedupDecision(NamedTuple):
    """Decision about one event.

    passes:   True if the event continues
    first:    position of the event that it repeats; None if it repeats none
    remember: event to compare later ones with from now on; None to keep the known one
    """

    passes: bool
    first: int | None = None
    remember: SeenEvent | None = None


def judge(known: SeenEvent | None, event: SeenEvent, window_us: int) -> DedupDecision:
    """Decide whether an event is the first of its identity within the window, given the known event.

    An event at the known position is not a repeat but the same message reported twice: it does not pass again, and
    `first` is None. An event ingested more than a window before the known one passes, because no event is dropped for
    being late, and does not replace the known one.
    """
    if known is None:
        return DedupDecision(True, remember=event)
    if known.position == event.position:
        return DedupDecision(False)
    later_us = event.ingest_us - known.ingest_us
    if abs(later_us) <= window_us:
        return DedupDecision(False, first=known.position)
    return DedupDecision(True, remember=event if later_us > 0 else None)
