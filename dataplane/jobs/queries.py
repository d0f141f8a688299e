"""Keeps a cell's Structured Streaming queries running beside its lanes, as the driver keeps lanes.

A query runs while a pipe of the cell asks for it; a cell whose pipes ask for none starts nothing. Each has one fixed
checkpoint per (cell, query, generation of its topic). Where that is missing it begins at its journal, or refuses: never
from "latest", and never with a state that forgot what it must not forget.
"""

import logging
import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
from confluent_kafka import KafkaException
from msgspec import Struct
from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dataplane.jobs.journal import Journal, Journalled
from dataplane.jobs.wanted import STABLE_S, back_off_s
from dataplane.names import Purpose, query_group
from dataplane.runtime.settings import Settings
from dataplane.spec import PipeSpec
from dataplane.tables.control import ControlTable
from dataplane.tables.records import CellRecord, PlanRecord, Record

log = logging.getLogger("queries")

STATE_STORE: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SESSION: Final = {
    "spark.sql.shuffle.partitions": "2",  # also the number of state stores; fixed for good by the first checkpoint
    "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
    "spark.sql.streaming.pollingDelay": "50ms",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",  # no query's clock is Spark's
    "spark.sql.streaming.minBatchesToRetain": "20",
}


class Start(Struct, frozen=True):
    """What a query is started with.

    table:      the driver's own, which goes on changing
    checkpoint: its directory, once it is known
    starting:   Spark's startingOffsets, heeded only where there is no checkpoint
    """

    cell: CellRecord
    table: ControlTable
    settings: Settings
    incarnation: str
    checkpoint: str = ""
    starting: str = ""


class Query(Protocol):
    """A kind of query: at most one of it in a cell, for all pipes that ask.

    reads:      the topic it reads
    may_forget: whether it may begin at its journal with an empty state when its checkpoint is lost
    tasks:      task slots that it takes
    """

    name: str
    reads: Purpose
    may_forget: bool
    tasks: int

    def asked_by(self, spec: PipeSpec) -> bool:
        """Whether a revision needs it."""

    def start(self, spark: SparkSession, start: Start) -> Any:
        """Start it and return Spark's StreamingQuery."""

    def close(self) -> None:
        """It has ended: release what `start` opened."""


class Asked:
    """Which queries the plans known so far ask for. A plan that is kept may still have messages under way."""

    def __init__(self, table: ControlTable, queries: Sequence[Query]) -> None:
        self._table, self._queries = table, queries
        self._pipes: dict[str, set[str]] = {}
        table.on_change(self._note)

    def _note(self, record: Record) -> None:
        if isinstance(record, PlanRecord):
            for query in self._queries:
                if query.asked_by(record.spec):
                    self._pipes.setdefault(query.name, set()).add(record.pipe)

    def of_cell(self, cell: str) -> list[Query]:
        """Those that a pipe of this cell asks for."""
        return [query for query in self._queries if any(map(self._runs_in(cell), self._pipes.get(query.name, ())))]

    def _runs_in(self, cell: str) -> Any:
        return lambda pipe: (record := self._table.pipe(pipe)) is not None and record.cell == cell


def why_not(query: Query, journalled: Journalled | None, *, has_checkpoint: bool) -> str:
    """Why a query must not start; "" if it may. Pure."""
    if has_checkpoint:
        return ""
    if journalled is None:
        return "neither a checkpoint nor a journal says where to begin"
    if journalled.has_read and not query.may_forget:
        return f"its checkpoint is gone, and with it what it knew; it had read up to {journalled.offsets}"
    return ""


class QueryJob:
    """One query in a thread of the driver, in its own FAIR pool."""

    def __init__(self, spark: SparkSession, query: Query, start: Start) -> None:
        self.query = query
        self.outcome = ""
        self.started = time.monotonic()
        self._spark, self._start = spark, start
        self._topic = start.cell.topics[query.reads]
        self._streaming: Any = None
        self._ending = False
        self._noted = ""
        self.thread = InheritableThread(target=self._run)
        self.thread.daemon = True
        self.thread.start()

    @property
    def state(self) -> str:
        """What it is doing, in words."""
        return f"running, read up to {self._noted}" if self._noted else "running" if self._streaming else "starting"

    def stop(self) -> None:
        """Ask it to end; the batch under way is done again by the next start."""
        self._ending = True
        if self._streaming is not None:
            self._streaming.stop()

    def _run(self) -> None:
        name = self.query.name
        journal = Journal(self._start.settings.kafka, query_group(self._start.cell.cell, name), self._topic)
        try:
            self._begin(journal)
            while self._streaming is not None and not self._streaming.awaitTermination(1):
                self._note(journal)
            self.outcome = self.outcome or "stopped"
        except (PySparkException, KafkaException) as exc:
            self.outcome = f"failed({type(exc).__name__}): {str(exc)[:300]}"
            log.warning("query %s: %s", name, str(exc)[:4_000])
        finally:
            if self._streaming is not None:
                self._streaming.stop()  # when the journal failed it runs on, and the next start would meet it
            journal.close()
            self.query.close()

    def _begin(self, journal: Journal) -> None:
        checkpoint = checkpoint_of(self._start.settings.var, self._start.cell, self.query)
        known = journal.read()
        has_checkpoint = any((checkpoint / "offsets").glob("[0-9]*"))
        if why := why_not(self.query, known, has_checkpoint=has_checkpoint):
            self.outcome = f"refused: {why}"
            log.error("query %s refused: %s", self.query.name, why)
            return
        starting = known.starting(self._topic.name) if known else "earliest"
        for setting in SESSION.items():  # here, because a session of Spark SQL costs a cell seconds
            self._spark.conf.set(*setting)
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.query.name)
        start = msgspec.structs.replace(self._start, checkpoint=str(checkpoint), starting=starting)
        self._streaming = self.query.start(self._spark, start)
        if self._ending:
            self._streaming.stop()

    def _note(self, journal: Journal) -> None:
        """Write down how far the batches that are done have read."""
        progress = self._streaming.lastProgress
        ends = progress["sources"][0]["endOffset"] if progress else None
        if not ends or str(ends) == self._noted:
            return
        places = msgspec.json.decode(ends) if isinstance(ends, str) else ends
        journal.write({int(p): offset for p, offset in places[self._topic.name].items()})
        self._noted = str(ends)


class QueryKeeper:
    """Twice a second: what is asked for, what runs, what to start again."""

    def __init__(self, spark: SparkSession, settings: Settings, table: ControlTable, queries: Sequence[Query]) -> None:
        self._spark, self._settings, self._table = spark, settings, table
        self._asked = Asked(table, queries)
        self._jobs: dict[str, QueryJob] = {}
        self._failures: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        self._ended: dict[str, str] = {}

    @property
    def states(self) -> Mapping[str, str]:
        """What each query is doing, or why it does not run."""
        return self._ended | {name: job.state for name, job in self._jobs.items()}

    def turn(self, cell: CellRecord, incarnation: str) -> None:
        """Start what is asked for and does not run; reap what ended."""
        now = time.monotonic()
        self._reap(now)
        for query in self._asked.of_cell(cell.cell):
            waits = query.name in self._jobs or self._not_before.get(query.name, 0.0) > now
            if not waits and query.reads in cell.topics:
                log.info("starting query %s", query.name)
                self._ended.pop(query.name, None)
                start = Start(cell, self._table, self._settings, incarnation)
                self._jobs[query.name] = QueryJob(self._spark, query, start)

    def tasks(self, cell: str) -> int:
        """Task slots that the queries of a cell take; lanes leave them free."""
        return sum(query.tasks for query in self._asked.of_cell(cell))

    def stop(self, seconds: float) -> None:
        """End them all; what is not done in time is done again by the next driver."""
        for job in self._jobs.values():
            job.stop()
        deadline = time.monotonic() + seconds
        for job in self._jobs.values():
            job.thread.join(max(0.0, deadline - time.monotonic()))

    def _reap(self, now: float) -> None:
        for name, job in list(self._jobs.items()):
            if job.thread.is_alive():
                continue
            del self._jobs[name]
            log.info("query %s ended: %s", name, job.outcome)
            self._ended[name] = job.outcome
            if now - job.started > STABLE_S:
                self._failures.pop(name, None)
            failures = self._failures[name] = self._failures.get(name, -1) + 1
            self._not_before[name] = now + back_off_s(failures, random.random())  # noqa: S311


def checkpoint_of(var: Path, cell: CellRecord, query: Query) -> Path:
    """Where a query's checkpoint lies: fixed for (cell, query, generation)."""
    return var / "data" / "checkpoints" / cell.cell / f"{query.name}.g{cell.topics[query.reads].generation}"
