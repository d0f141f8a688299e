"""Supervisor of a cell's Structured Streaming queries; it restarts them as the driver restarts lanes.

A query runs while a pipe of the cell needs it; a cell whose pipes need none starts none. Each query has one fixed
checkpoint per (cell, query, generation of its topic). Without the checkpoint it starts from its journal or refuses to
start: it never starts from "latest", and never with an empty state if the query must not lose its state.
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

from dataplane.jobs.driver_decisions import STABLE_S, back_off_s
from dataplane.jobs.journal import JournalledTopic, QueryJournal
from dataplane.jobs.rescaling import PARTITIONS, finish_replacement, rescale
from dataplane.names import Purpose, query_group
from dataplane.runtime.settings import DataPlaneSettings
from dataplane.spec import PipeSpec
from dataplane.tables.control import ControlTable
from dataplane.tables.records import CellRecord, PlanRecord, Record

log = logging.getLogger("queries")

STATE_STORE: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
DEFAULT_STATE_PARTITIONS: Final = 2  # of a query whose number is not set
STATE_SERVER: Final = "org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkStateServer"
SESSION: Final = {
    "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
    "spark.sql.streaming.pollingDelay": "50ms",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",  # no query uses Spark's clock
    "spark.sql.streaming.minBatchesToRetain": "20",
}


class QueryStart(Struct, frozen=True):
    """Arguments of a query's start.

    table:      the driver's own, which keeps changing
    checkpoint: its directory, once it is known
    starting:   Spark's startingOffsets, used only without a checkpoint
    """

    cell: CellRecord
    table: ControlTable
    settings: DataPlaneSettings
    incarnation: str
    checkpoint: str = ""
    starting: str = ""


class Query(Protocol):
    """Kind of query: a cell runs at most one of a kind, for all pipes that need it.

    reads:      purpose of its input topic
    may_forget: True if it may start from its journal with an empty state after its checkpoint is lost
    has_state:  True if its checkpoint has state, which is divided into partitions
    tasks:      task slots that it takes; with more state partitions, its stages run in waves
    """

    name: str
    reads: Purpose
    may_forget: bool
    has_state: bool
    tasks: int

    def is_needed_by(self, spec: PipeSpec) -> bool:
        """Return True if a revision with this spec needs the query."""

    def start(self, spark: SparkSession, start: QueryStart) -> Any:
        """Start the query and return Spark's StreamingQuery."""

    def close(self) -> None:
        """Release what `start` opened; called when the query has ended."""


class RequiredQueries:
    """Queries that the plans seen so far need. All plans count: old revisions may still have messages in flight."""

    def __init__(self, table: ControlTable, queries: Sequence[Query]) -> None:
        self._table, self._queries = table, queries
        self._pipes: dict[str, set[str]] = {}
        table.on_change(self._note)

    def _note(self, record: Record) -> None:
        if isinstance(record, PlanRecord):
            for query in self._queries:
                if query.is_needed_by(record.spec):
                    self._pipes.setdefault(query.name, set()).add(record.pipe)

    def of_cell(self, cell: str) -> list[Query]:
        """Return the queries that a pipe of this cell needs."""
        return [query for query in self._queries if any(map(self._runs_in(cell), self._pipes.get(query.name, ())))]

    def _runs_in(self, cell: str) -> Any:
        return lambda pipe: (record := self._table.pipe(pipe)) is not None and record.cell == cell


def refusal_of(query: Query, journalled: JournalledTopic | None, *, has_checkpoint: bool) -> str:
    """Return the reason why a query must not start; "" if it may. Pure."""
    if has_checkpoint:
        return ""
    if journalled is None:
        return "neither a checkpoint nor a journal gives a starting offset"
    if journalled.has_read and not query.may_forget:
        return f"its checkpoint is gone, and its state with it; it had read up to {journalled.offsets}"
    return ""


def running_state(has_started: bool, read_up_to: str, not_rescaled: str) -> str:
    """Return the state of a query that runs or starts, as text. Pure.

    not_rescaled: why its state could not be redistributed; "" if it could, or need not
    """
    state = f"running, read up to {read_up_to}" if read_up_to else "running" if has_started else "starting"
    return f"{state}; keeps its state partitions: {not_rescaled}" if not_rescaled else state


class QueryJob:
    """Query that runs in a thread of the driver, in its own FAIR pool."""

    def __init__(self, spark: SparkSession, query: Query, start: QueryStart) -> None:
        self.query = query
        self.outcome = ""
        self.started = time.monotonic()
        self._spark, self._start = spark, start
        self._topic = start.cell.topics[query.reads]
        self._streaming: Any = None
        self._ending = False
        self._noted = ""
        self._not_rescaled = ""
        self.thread = InheritableThread(target=self._run)
        self.thread.daemon = True
        self.thread.start()

    @property
    def state(self) -> str:
        """The current state as text."""
        return running_state(self._streaming is not None, self._noted, self._not_rescaled)

    def stop(self) -> None:
        """Ask the query to end; the next start repeats an unfinished batch."""
        self._ending = True
        if self._streaming is not None:
            self._streaming.stop()

    def _run(self) -> None:
        name = self.query.name
        journal = QueryJournal(self._start.settings.kafka, query_group(self._start.cell.cell, name), self._topic)
        try:
            self._begin(journal)
            while self._streaming is not None and not self._streaming.awaitTermination(1):
                self._note(journal)
            self.outcome = self.outcome or "stopped"
        except (PySparkException, KafkaException, OSError) as exc:
            self.outcome = f"failed({type(exc).__name__}): {str(exc)[:300]}"
            log.warning("query %s: %s", name, str(exc)[:4_000])
        finally:
            if self._streaming is not None:
                self._streaming.stop()  # it still runs if the journal failed, and would conflict with the next start
            journal.close()
            self.query.close()

    def _begin(self, journal: QueryJournal) -> None:
        checkpoint = checkpoint_of(self._start.settings.var, self._start.cell, self.query)
        finish_replacement(checkpoint)
        known = journal.read()
        has_checkpoint = any((checkpoint / "offsets").glob("[0-9]*"))
        if why := refusal_of(self.query, known, has_checkpoint=has_checkpoint):
            self.outcome = f"refused: {why}"
            log.error("query %s refused: %s", self.query.name, why)
            return
        starting = known.starting(self._topic.name) if known else "earliest"
        partitions = self._start.settings.state_partitions
        for setting in (SESSION | {PARTITIONS: str(partitions or DEFAULT_STATE_PARTITIONS)}).items():
            self._spark.conf.set(*setting)  # only now, because a Spark SQL session costs a cell seconds
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.query.name)
        silence_missing_keys(self._spark)
        if partitions and has_checkpoint and self.query.has_state:
            self._not_rescaled = rescale(self._spark, checkpoint, partitions)
        start = msgspec.structs.replace(self._start, checkpoint=str(checkpoint), starting=starting)
        self._streaming = self.query.start(self._spark, start)
        if self._ending:
            self._streaming.stop()

    def _note(self, journal: QueryJournal) -> None:
        """Write the end offsets of the completed batches to the journal."""
        progress = self._streaming.lastProgress
        ends = progress["sources"][0]["endOffset"] if progress else None
        if not ends or str(ends) == self._noted:
            return
        by_topic = msgspec.json.decode(ends) if isinstance(ends, str) else ends
        journal.write({int(p): offset for p, offset in by_topic[self._topic.name].items()})
        self._noted = str(ends)


class QuerySupervisor:
    """Keeps the needed queries running; the driver polls it twice a second."""

    def __init__(
        self, spark: SparkSession, settings: DataPlaneSettings, table: ControlTable, queries: Sequence[Query]
    ) -> None:
        self._spark, self._settings, self._table = spark, settings, table
        self._required = RequiredQueries(table, queries)
        self._jobs: dict[str, QueryJob] = {}
        self._failures: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        self._ended: dict[str, str] = {}

    @property
    def states(self) -> Mapping[str, str]:
        """The state of each query, or the outcome of one that has ended."""
        return self._ended | {name: job.state for name, job in self._jobs.items()}

    def poll(self, cell: CellRecord, incarnation: str) -> None:
        """Remove ended queries; start those that are needed and do not run."""
        now = time.monotonic()
        self._reap(now)
        for query in self._required.of_cell(cell.cell):
            waits = query.name in self._jobs or self._not_before.get(query.name, 0.0) > now
            if not waits and query.reads in cell.topics:
                log.info("starting query %s", query.name)
                self._ended.pop(query.name, None)
                start = QueryStart(cell, self._table, self._settings, incarnation)
                self._jobs[query.name] = QueryJob(self._spark, query, start)

    def tasks(self, cell: str) -> int:
        """Return the task slots that the queries of a cell take; lanes leave them free."""
        return sum(query.tasks for query in self._required.of_cell(cell))

    def stop(self, seconds: float) -> None:
        """Stop all queries and wait up to `seconds`; the next driver repeats unfinished batches."""
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


def silence_missing_keys(spark: SparkSession) -> None:
    """Stop Spark's warning about each new key of a map state; for executors in the driver's JVM."""
    log4j = spark._jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel(STATE_SERVER, log4j.Level.ERROR)


def checkpoint_of(var: Path, cell: CellRecord, query: Query) -> Path:
    """Return the directory of a query's checkpoint, fixed for (cell, query, generation)."""
    return var / "data" / "checkpoints" / cell.cell / f"{query.name}.g{cell.topics[query.reads].generation}"
