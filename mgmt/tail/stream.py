"""A viewer's stream as server-sent events: copies as they come, and once a second how it stands."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from dataplane.ledger.units import format_position
from mgmt.sandbox import SandboxBusy, SandboxLimit
from mgmt.tail.copies import Copy, Cursor
from mgmt.tail.filter import TailFilter
from mgmt.tail.hub import Hub
from mgmt.tail.viewer import Viewer

PER_S: Final = 20.0  # more than that nobody reads; what is left out is counted
BURST: Final = 200.0  # for one who comes back after a pause
STANDING_S: Final = 1.0  # also how soon a browser that has gone is noticed
BEGINS_S: Final = 0.05  # until the reader is there it is looked at so often
MOST_S: Final = 120.0  # then the browser comes again, and is asked anew who it is
SHOWN_BYTES: Final = 4 * 1024  # of a body; the message's own page has the rest


class Pace:
    """Lets so many a second through, after a rest a burst of them. Pure."""

    def __init__(self, per_s: float, burst: float, now_s: float) -> None:
        self._per_s, self._burst = per_s, burst
        self._free, self._at_s = burst, now_s

    def lets(self, now_s: float) -> bool:
        """Whether one more may pass now."""
        self._free = min(self._burst, self._free + (now_s - self._at_s) * self._per_s)
        self._at_s = now_s
        if self._free < 1:
            return False
        self._free -= 1
        return True


class Stream:
    """The chunks of an answer. Its thread waits here, so whoever answers with it calls `close` in the end."""

    def __init__(
        self,
        hub: Hub,
        filter_: TailFilter,
        *,
        topic: str,
        generation: int,
        pipe: str,
        after: Cursor | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        """Raises TailFullError. A cursor of another generation of the topic begins with what comes, and says so."""
        self._hub, self._topic, self._generation, self._filter = hub, topic, generation, filter_
        self._pending: deque[Copy] = deque()  # taken, and not asked about yet
        self._on_close = on_close
        self._is_another = after is not None and after.generation != generation
        self._viewer = Viewer(pipe, after.offset if after and not self._is_another else None)
        self._chunks = self._run()
        hub.join(topic, self._viewer)

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks

    def close(self) -> None:
        """The browser is gone."""
        self._hub.leave(self._topic, self._viewer)
        self._on_close()

    def _run(self) -> Iterator[bytes]:
        now_s = time.monotonic()
        pace, tally = Pace(PER_S, BURST, now_s), Tally()
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
                chunk = [self._told(copy) for copy in self._wanted(pace, tally)]
            except SandboxLimit as exc:
                yield event("refused", {"reason": str(exc)})
                return
            is_due = now_s >= due_s
            if is_due and taken.after is None and not self._hub.trouble:  # who is told that it lives misses nothing
                due_s = now_s + BEGINS_S
                chunk.append(b":\n\n")
            elif is_due:
                tally.trouble = self._hub.trouble
                chunk.append(event("standing", tally, self._cursor(self._seen(taken.after))))
                due_s, tally = now_s + STANDING_S, Tally()
            yield b"".join(chunk)

    def _wanted(self, pace: Pace, tally: "Tally") -> Iterator[Copy]:
        """Yield those that the viewer wants and the pace lets through; the others are counted.

        What the filter had no time for stays pending. Raises SandboxLimit.
        """
        try:
            passes = self._filter.passes(self._pending)
        except SandboxBusy:
            passes = []  # they are asked about in the next turn; meanwhile the viewer's queue drops its oldest
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
        """The offset behind which a stream that comes back has to begin."""
        return self._pending[0].offset - 1 if self._pending else after

    def _told(self, copy: Copy) -> bytes:
        return event("copy", shown(copy), self._cursor(copy.offset))

    def _cursor(self, offset: int | None) -> str:
        return "" if offset is None else str(Cursor(self._generation, offset))


class Tally(msgspec.Struct):
    """What became of the copies since the last time it was told. `missed` and `gap` as in Taken.

    left_out: wanted, but more than PER_S a second; unjudged: the condition had no value for them
    trouble:  why nothing can come, "" if it can
    """

    shown: int = 0
    left_out: int = 0
    unjudged: int = 0
    missed: int = 0
    gap: bool = False
    trouble: str = ""


def event(name: str, data: Any, cursor: str = "") -> bytes:
    """One server-sent event; a browser that comes back names the last `cursor`."""
    head = f"id: {cursor}\nevent: {name}\n" if cursor else f"event: {name}\n"
    return head.encode() + b"data: " + msgspec.json.encode(data) + b"\n\n"


def shown(copy: Copy) -> dict[str, Any]:
    """A copy as pages and programs get it. `body` is text, cut to SHOWN_BYTES."""
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
