"""Dedup, decided: what an event is known by, and which of two with the same identity goes on. Pure."""

from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec

from dataplane.spec.dedup import Dedup
from dataplane.stages.paths import MISSING, compile_path, get

_encode = msgspec.json.Encoder(order="sorted").encode
DIGEST_BYTES: Final = 16


class Identity:
    """What makes an event of a pipe the same as another one."""

    def __init__(self, dedup: Dedup) -> None:
        self._paths = [compile_path(path) for path in dedup.paths]
        self.window_us = dedup.window_s * 1_000_000

    def of(self, pipe: str, body: Any) -> bytes | None:
        """16 bytes, the same for the same values in the same pipe; None if a path leads to no value."""
        values = [get(body, path) for path in self._paths]
        if any(value is MISSING or value is None for value in values):
            return None
        return blake2b(_encode([pipe, *values]), digest_size=DIGEST_BYTES).digest()


class Seen(NamedTuple):
    """An event that went on: its position, and when it came by our clock."""

    position: int
    ingest_us: int


class Judgement(NamedTuple):
    """passes: it goes on;  first: the position it repeats;  remember: whom later ones are held against from now on."""

    passes: bool
    first: int | None = None
    remember: Seen | None = None


def judge(known: Seen | None, event: Seen, window_us: int) -> Judgement:
    """Whether an event is the first of its identity, given whom we know.

    The same position again is no repeat but the same message told twice: it has gone on already. One that came long
    before whom we know passes, because nothing is dropped for being late, and leaves what we know as it is.
    """
    if known is None:
        return Judgement(True, remember=event)
    if known.position == event.position:
        return Judgement(False)
    later_us = event.ingest_us - known.ingest_us
    if abs(later_us) <= window_us:
        return Judgement(False, first=known.position)
    return Judgement(True, remember=event if later_us > 0 else None)
