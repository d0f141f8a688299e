"""A pipe whose messages die in its steps is held at its entrance: they go to `held` untouched, until it is resumed.

The lane that sees it holds at once, and tells; the control plane pauses the pipe, so that every lane holds. What is
resumed comes back by the retrier, on the ingest topic, under the position that it had.
"""

import time
from collections.abc import Sequence

from dataplane.ledger.breakdown import Slice
from dataplane.ledger.meta import META_HEADER, encode_meta
from dataplane.process.deadrate import DeadRate, Limit
from dataplane.process.dedup import JUDGED
from dataplane.process.item import Item
from dataplane.process.run import Run
from dataplane.runtime.lane import Lane
from dataplane.runtime.outbox import TooLargeError
from dataplane.tables.records import DEAD_RATE, PipeRecord
from dataplane.tables.signals import SIGNAL_VERSION, Signal, encode_signal, signal_key


class Holding:
    """What this lane holds of its own accord counts until the pipe's record changes: then it has been heard."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._held, self._signals = lane.cell.topics["held"], lane.cell.topics["signals"].name
        self._limit = Limit(lane.settings.dead_percent, lane.settings.dead_least)
        self._rates: dict[str, DeadRate] = {}
        self._shut: dict[str, int] = {}  # the version of the pipe's record under which it was found so

    def holds(self, pipe: str) -> bool:
        """Whether the pipe's messages are to be held before its steps."""
        record = self._lane.table.pipe(pipe)
        if record is None:
            return False
        return self._shut.get(pipe) == record.version or (record.state == "paused" and record.cause == DEAD_RATE)

    def hold(self, run: Run, items: Sequence[Item]) -> list[Item]:
        """Produce each item to `held` as it came, as its next round; returns those that are too large for it."""
        too_large = []
        run.through = []
        run.owed += 1
        stopwatch = run.leave(Slice.HELD)
        shipment = self._lane.outbox.shipment(self._held.name, run)
        partition = run.origin % self._held.partitions  # of one here, one there: they come back in their order
        for item in items:
            item.meta.attempt += 1
            item.meta.stopwatch = run.leave_again(item, Slice.HELD) if item.back else stopwatch
            judged = [JUDGED] if item.judged else []
            key = item.message.key()
            headers = [(META_HEADER, encode_meta(item.meta)), *item.headers[1:], *judged]
            try:
                shipment.send(item.original, key, partition, headers)
            except TooLargeError:
                too_large.append(item)
            else:
                run.held(item.meta)
        shipment.close()
        return too_large

    def note(self, run: Run, seen: int) -> None:
        """Messages passed the steps; too many of them may have died."""
        rate = self._rates.get(run.pipe)
        if rate is None:
            rate = self._rates[run.pipe] = DeadRate(self._limit)
        if rate.note(time.monotonic(), seen, len(run.died)):
            record = self._lane.table.pipe(run.pipe)
            del self._rates[run.pipe]
            if record is not None:
                self._shut[run.pipe] = record.version
                self._tell(record, f"{rate}, the last of them at {run.why}")

    def _tell(self, record: PipeRecord, why: str) -> None:
        """To the Observer, as lanes tell of a destination that they suspend."""
        self._lane.tally.add(f"held: pipe={record.pipe} {why}")
        signal = Signal(
            SIGNAL_VERSION,
            self._lane.identity.cell,
            self._lane.identity.writer,
            record.pipe,
            "",
            time.time_ns() // 1_000,
            breaker="open",
            suspended=DEAD_RATE,
            reason=why,
            of_version=record.version,
        )
        self._lane.outbox.send(self._signals, None, key=signal_key(signal).encode(), value=encode_signal(signal))
