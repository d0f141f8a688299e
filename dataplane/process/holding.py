"""Holding of a pipe whose steps dead-letter too many messages: they go to `held` unchanged until the pipe is resumed.

The lane that detects it holds at once and reports it; the control plane pauses the pipe, so that every lane holds. On
resumption the retrier returns the messages to the ingest topic, under their original positions.
"""

import time
from collections.abc import Sequence

from dataplane.causes import Cause
from dataplane.ledger.breakdown import Slice
from dataplane.ledger.meta import META_HEADER, encode_meta
from dataplane.process.dead_letter_rate import DeadRate, DeadRateLimit
from dataplane.process.dedup import JUDGED
from dataplane.process.item import ProcessItem
from dataplane.process.run import MessageRun
from dataplane.runtime.lanes.context import LaneContext
from dataplane.runtime.producers.tracked_producer import RecordTooLargeError
from dataplane.tables.records import PipeRecord
from dataplane.tables.signals import SIGNAL_VERSION, DestinationSignal, encode_signal, signal_key


class HoldPolicy:
    """Decides which pipes are held. The lane's own decision applies until the pipe's control record changes."""

    def __init__(self, lane: LaneContext) -> None:
        self._lane = lane
        self._held, self._signals = lane.cell.topics["held"], lane.cell.topics["signals"].name
        self._limit = DeadRateLimit(lane.settings.dead_percent, lane.settings.dead_least)
        self._rates: dict[str, DeadRate] = {}
        self._shut: dict[str, int] = {}  # by pipe: version of its record when the lane decided to hold it

    def holds(self, pipe: str) -> bool:
        """Return True if the pipe's messages are to be held before its steps."""
        record = self._lane.table.pipe(pipe)
        if record is None:
            return False
        return self._shut.get(pipe) == record.version or (record.state == "paused" and record.cause == Cause.DEAD_RATE)

    def hold(self, run: MessageRun, items: Sequence[ProcessItem]) -> list[ProcessItem]:
        """Produce each item to `held` unchanged, in its next round; return the items that are too large for that."""
        too_large = []
        run.through = []
        run.owed += 1
        stopwatch = run.leave(Slice.HELD)
        produce_group = self._lane.producer.begin_group(self._held.name, run)
        partition = run.origin % self._held.partitions  # always the same one: messages return in their order
        for item in items:
            item.meta.attempt += 1
            item.meta.stopwatch = run.leave_again(item, Slice.HELD) if item.back else stopwatch
            judged = [JUDGED] if item.judged else []
            key = item.message.key()
            headers = [(META_HEADER, encode_meta(item.meta)), *item.headers[1:], *judged]
            try:
                produce_group.send(item.original, key, partition, headers)
            except RecordTooLargeError:
                too_large.append(item)
            else:
                run.held(item.meta)
        produce_group.close()
        return too_large

    def note(self, run: MessageRun, seen: int) -> None:
        """Add a run to the rate of its pipe; hold the pipe and report it if the limit is reached."""
        rate = self._rates.get(run.pipe)
        if rate is None:
            rate = self._rates[run.pipe] = DeadRate(self._limit)
        if rate.note(time.monotonic(), seen, len(run.died)):
            record = self._lane.table.pipe(run.pipe)
            del self._rates[run.pipe]
            if record is not None:
                self._shut[run.pipe] = record.version
                self._report(record, f"{rate}, the last at {run.why}")

    def _report(self, record: PipeRecord, why: str) -> None:
        """Report the pipe to the Observer, with the signal that also reports suspended destinations."""
        self._lane.tally.add(f"held: pipe={record.pipe} {why}")
        signal = DestinationSignal(
            SIGNAL_VERSION,
            self._lane.identity.cell,
            self._lane.identity.writer,
            record.pipe,
            "",
            time.time_ns() // 1_000,
            breaker="open",
            suspended=Cause.DEAD_RATE,
            reason=why,
            of_version=record.version,
        )
        self._lane.producer.send(self._signals, None, key=signal_key(signal).encode(), value=encode_signal(signal))
