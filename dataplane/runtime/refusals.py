"""Records that their topic refuses (too large for it, not allowed, gone): kept in order, and tried again. Pure.

While a topic refuses, one record a second asks whether it takes again; all others for it wait behind that one. When
many wait the lane takes no more messages: that is the back-pressure, for nothing of them is settled.
"""

import logging
from collections import deque
from typing import Any, Final

from msgspec import Struct

from dataplane.ledger.meta import Headers

log = logging.getLogger(__name__)

AGAIN_S: Final = 1.0
MANY: Final = 1_000


class Letter(Struct, eq=False):
    """One record, as it was given to the outbox, and the token that comes out when it is stored."""

    topic: str
    token: Any
    value: bytes | None
    key: bytes | None
    partition: int
    headers: Headers


class _Refusal(Struct):
    """A topic that refuses. `asking` is the letter that is on its way to find out whether it still does."""

    why: str
    due_s: float
    letters: deque[Letter]
    asking: Letter | None = None


class Refusals:
    """What waits for topics that refuse it."""

    def __init__(self) -> None:
        self._refusals: dict[str, _Refusal] = {}
        self._free: list[Letter] = []  # their topic takes again

    def takes(self, letter: Letter) -> bool:
        """Whether the letter waits here behind others of its topic, and is not to be produced now."""
        refusal = self._refusals.get(letter.topic)
        if refusal is not None:
            refusal.letters.append(letter)
        return refusal is not None

    def put_off(self, letter: Letter, why: str, now_s: float) -> None:
        """Its topic has refused this letter."""
        refusal = self._refusals.get(letter.topic)
        if refusal is None:
            log.error("topic %s refuses records: %s", letter.topic, why)
            refusal = self._refusals[letter.topic] = _Refusal(why, now_s + AGAIN_S, deque())
        if refusal.asking is letter:
            refusal.why, refusal.due_s, refusal.asking = why, now_s + AGAIN_S, None
            refusal.letters.appendleft(letter)
        else:
            refusal.letters.append(letter)

    def stored(self, letter: Letter) -> None:
        """A letter is stored; if it was the one that asked, those behind it may follow."""
        refusal = self._refusals.get(letter.topic)
        if refusal is not None and refusal.asking is letter:
            log.info("topic %s takes records again", letter.topic)
            self._free += self._refusals.pop(letter.topic).letters

    def due(self, now_s: float) -> list[Letter]:
        """What is to be produced now."""
        due, self._free = self._free, []
        for refusal in self._refusals.values():
            if refusal.asking is None and now_s >= refusal.due_s:
                refusal.asking = refusal.letters.popleft()
                due.append(refusal.asking)
        return due

    @property
    def is_full(self) -> bool:
        """Whether many wait."""
        return sum(len(refusal.letters) for refusal in self._refusals.values()) >= MANY

    @property
    def words(self) -> str:
        """Which topics refuse, why, and how much waits for them."""
        return "; ".join(
            f"{topic} refuses records: {refusal.why} ({len(refusal.letters) + bool(refusal.asking)} wait)"
            for topic, refusal in self._refusals.items()
        )
