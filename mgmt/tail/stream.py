"""Server-sent events of one viewer: copies as they arrive, and once a second the state of the stream."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from dataplane.ledger.units import format_position
from mgmt.sandbox import SandboxBusy, SandboxLimit
from mgmt.tail.copies import PeekedCopy, TailCursor
from mgmt.tail.filter import TailFilter
from mgmt.tail.hub import TailHub
from mgmt.tail.viewer import TailViewer

PER_S: Final = 20.0  # copies; nobody can read more, and copies that are left out are counted
BURST: Final = 200.0  # copies, for a browser that reconnects after a pause
STANDING_S: Final = 1.0  # also how soon a browser that has gone is noticed
BEGINS_S: Final = 0.05  # poll interval until the reader has begun
MOST_S: Final = 120.0  # then the browser reconnects and is authenticated again
SHOWN_BYTES: Final = 4 * 1024  # of a body; the message's page has all of it


class TailRateLimit:
    """Token bucket: passes `per_s` copies per second, and up to `burst` after a pause. Pure."""

    def __init__(self, per_s: float, burst: float, now_s: float) -> None:
        self._per_s, self._burst = per_s, burst
        self._free, self._at_s = burst, now_s

    def lets(self, now_s: float) -> bool:
        """Return True, and take a token, if one more copy may pass now."""
        self._free = min(self._burst, self._free + (now_s - self._at_s) * self._per_s)
        self._at_s = now_s
        if self._free < 1:
            return False
        self._free -= 1
        return True


class TailStream:
    """Iterator over the chunks of a streaming response. The view must call `close` at its end."""

    def __init__(
        self,
        hub: TailHub,
        filter_: TailFilter,
        *,
        topic: str,
        generation: int,
        pipe: str,
        after: TailCursor | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        """Raise TailCapacityError without a free place. A cursor of another generation of the topic reports a gap."""
        self._hub, self._topic, self._generation, self._filter = hub, topic, generation, filter_
        self._pending: deque[PeekedCopy] = deque()  # taken from the queue, not filtered yet
        self._on_close = on_close
        self._is_another = after is not None and after.generation != generation
        self._viewer = TailViewer(pipe, after.offset if after and not self._is_another else None)
        self._chunks = self._run()
        hub.join(topic, self._viewer)

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks

    def close(self) -> None:
        """Remove the viewer; call it when the response has ended."""
        self._hub.leave(self._topic, self._viewer)
        self._on_close()

    def _run(self) -> Iterator[bytes]:
        now_s = time.monotonic()
        pace, tally = TailRateLimit(PER_S, BURST, now_s), TailStats()
        over_s, due_s = now_s + MOST_S, now_s
        yield b"retry: 2000\n\n"
        while now_s < over_s:
            taken = self._viewer.take(max(0.0, due_s - now_s), copies=not self._pending)
            now_s = time.monotonic()
            self._pending.extend(taken.copies)
            tally.missed += taken.missed
            tally.gap |= taken.gap or self._is_another
            self._is_another = False
            try:
                chunk = [event("copy", shown(copy), self._cursor(copy.offset)) for copy in self._wanted(pace, tally)]
            except SandboxLimit as exc:
                yield event("refused", {"reason": str(exc)})
                return
            is_due = now_s >= due_s
            if is_due and taken.after is None and not self._hub.trouble:  # a comment keeps the connection open
                due_s = now_s + BEGINS_S
                chunk.append(b":\n\n")
            elif is_due:
                tally.trouble = self._hub.trouble
                chunk.append(event("standing", tally, self._cursor(self._seen(taken.after))))
                due_s, tally = now_s + STANDING_S, TailStats()
            yield b"".join(chunk)

    def _wanted(self, pace: TailRateLimit, tally: "TailStats") -> Iterator[PeekedCopy]:
        """Yield the copies that pass the filter and the rate limit; count the others.

        Copies for which the filter had no time stay pending. Raises SandboxLimit.
        """
        try:
            passes = self._filter.passes(self._pending)
        except SandboxBusy:
            passes = []  # the next turn filters them; meanwhile the viewer's queue drops its oldest
        for passed in passes:
            copy = self._pending.popleft()
            if passed is None:
                tally.unjudged += 1
            elif passed and pace.lets(time.monotonic()):
                tally.shown += 1
                yield copy
            elif passed:
                tally.left_out += 1

    def _seen(self, after: int | None) -> int | None:
        """Return the offset after which a reconnected stream must begin."""
        return self._pending[0].offset - 1 if self._pending else after

    def _cursor(self, offset: int | None) -> str:
        return "" if offset is None else str(TailCursor(self._generation, offset))


class TailStats(msgspec.Struct):
    """Counts of copies since the last `standing` event. `missed` and `gap` as in TailChunk.

    left_out: copies that passed the filter but exceeded PER_S   unjudged: copies without a value of the condition
    trouble:  why no copies can arrive; "" if they can
    """

    shown: int = 0
    left_out: int = 0
    unjudged: int = 0
    missed: int = 0
    gap: bool = False
    trouble: str = ""


def event(name: str, data: Any, cursor: str = "") -> bytes:
    """Return one server-sent event; a browser that reconnects sends the last `cursor`."""
    head = f"id: {cursor}\nevent: {name}\n" if cursor else f"event: {name}\n"
    return head.encode() + b"data: " + msgspec.json.encode(data) + b"\n\n"


def shown(copy: PeekedCopy) -> dict[str, Any]:
    """Return a copy in the form of the console and the API. `body` is text, cut to SHOWN_BYTES."""
    meta = copy.peek.meta
    return {
        "at": copy.at,
        "node": copy.peek.node,
        "step": copy.peek.step,
        "message": meta.id,
        "position": format_position(meta.position),
        "child": meta.child,
        "revision": meta.revision,
        "body": copy.body[:SHOWN_BYTES].decode("utf-8", "replace"),
        "is_cut": len(copy.body) > SHOWN_BYTES,
    }
