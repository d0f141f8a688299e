"""The sequence query: compares the numbers of each key's events and reports gaps, reorderings and repeats.

Rows are grouped by slot and compared in the order of the sequence topic's one partition. A repeated batch starts from
the same state and gives the same breaks; the ledger and the Observer store each once. No event waits for this query.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from dataplane.jobs.dedup import kafka_rows, start_stream
from dataplane.jobs.ledger_reporter import QueryLedgerReporter
from dataplane.jobs.queries import QueryStart
from dataplane.ledger.facts import CHECKED, Fact, FactBook, FactKey
from dataplane.ledger.sequence_breaks import BreakKind, SequenceBreak
from dataplane.names import Purpose, sequence_node
from dataplane.plan.queries import needs_query
from dataplane.plan.sequence import (
    SequenceTap,
    compare_event,
    decode_sequence_break,
    decode_sequence_state,
    decode_sequence_tap,
    encode,
)
from dataplane.spec import PipeSpec

SLOTS: Final = 16
MOST_ROWS: Final = 20_000
MOST_BREAKS: Final = 200  # of a pipe and kind in a batch that are listed; the facts have all of them
FORGET_S: Final = 7 * 24 * 3_600  # a key without an event for so long begins a new sequence
# A row has an event that was compared, or (without a pipe) the report of a break.
COMPARED_ROW: Final = "pipe string, source string, bucket int, position long, kind string, broken binary"


class SequenceProcessor(StatefulProcessor):  # type: ignore[misc]  # PySpark is not typed here
    """Stateful processor in Spark's Python workers. State: a map from the digest of a key to its SequenceState."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state map."""
        self._keys = handle.getMapState("keys", "key binary", "kept binary", FORGET_S * 1_000)

    def handleInputRows(self, _slot: Any, rows: Iterable[Row], _timers: TimerValues) -> Iterator[Row]:  # noqa: N802
        """Compare the events of one slot.

        In:  taps of one slot.
        Out: one row per event, and one per report of a break.
        """
        for row in sorted(rows, key=lambda row: row.offset):
            tap, key = decode_sequence_tap(bytes(row.value)), (bytes(row.key),)
            kept = self._keys.getValue(key)
            found = compare_event(None if kept is None else decode_sequence_state(bytes(kept[0])), tap)
            self._keys.updateValue(key, (encode(found.state),))
            yield _row(tap, found.kind)
            for one in found.breaks:
                yield Row(pipe=None, source=None, bucket=None, position=None, kind=None, broken=encode(one))


def _row(tap: SequenceTap, kind: BreakKind | None) -> Row:
    return Row(pipe=tap.pipe, source=tap.source, bucket=tap.bucket, position=tap.position, kind=kind, broken=None)


class SequenceQuery:
    """The sequence query of a cell; it serves all sources with a sequence."""

    name = "sequence"
    reads: Purpose = "sequence"
    may_forget = True  # then each key begins a new sequence, and gaps across the loss are not found
    has_state = True
    tasks = 2

    def __init__(self) -> None:
        self._reporter: QueryLedgerReporter | None = None

    def is_needed_by(self, spec: PipeSpec) -> bool:
        """Return True if a source has a sequence."""
        return needs_query(self.name, spec)

    def start(self, spark: SparkSession, start: QueryStart) -> Any:
        """Start the query and return Spark's StreamingQuery."""
        self._reporter = QueryLedgerReporter(start.settings.kafka, start.cell.cell, self.name)
        rows = kafka_rows(spark, start, self.reads, MOST_ROWS).select("key", "value", "offset")
        slots = rows.withColumn("slot", f.expr(f"cast(pmod(crc32(key), {SLOTS}) as int)"))
        compared = slots.groupBy("slot").transformWithState(
            SequenceProcessor(), COMPARED_ROW, "append", "processingTime"
        )
        return start_stream(compared, start, self.name, SequenceWriter(self._reporter))

    def close(self) -> None:
        """Close the Kafka clients."""
        if self._reporter is not None:
            self._reporter.close()


class SequenceWriter:
    """Sink of a batch: reports it to the ledger."""

    def __init__(self, reporter: QueryLedgerReporter) -> None:
        self._reporter = reporter

    def __call__(self, batch: DataFrame, _number: int) -> None:
        """Report one batch. Idempotent: facts are sets, and a break has one row."""
        facts, breaks = FactBook(), BreakBook()
        for row in batch.collect():
            if row.broken is not None:
                breaks.add(decode_sequence_break(bytes(row.broken)))
                continue
            for detail in (CHECKED, row.kind) if row.kind else (CHECKED,):
                facts.add(row.pipe, row.bucket, FactKey(sequence_node(row.source), Fact.SENT, detail), row.position)
        if len(facts):
            self._reporter.report(facts, [], [], SequenceQuery.name, breaks.of_all())


class BreakBook:
    """Newest report of each break of a batch: at most MOST_BREAKS new ones of a pipe and kind, and all updates."""

    def __init__(self) -> None:
        self._by_kind: dict[tuple[str, str], dict[int, SequenceBreak]] = {}
        self._refused: set[int] = set()

    def add(self, one: SequenceBreak) -> None:
        """Add a report. The reports of a gap come in their order."""
        known = self._by_kind.setdefault((one.pipe, one.kind), {})
        if one.position in self._refused:
            return
        if one.is_update or one.position in known or len(known) < MOST_BREAKS:
            known[one.position] = one
        else:
            self._refused.add(one.position)

    def of_all(self) -> list[SequenceBreak]:
        """Return the breaks of all pipes."""
        return [one for known in self._by_kind.values() for one in known.values()]
