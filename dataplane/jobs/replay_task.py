"""Body of a replay's Spark task: it opens Kafka clients and the host's look-up tables, and runs the task with them."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Final

from pyspark import TaskContext

from dataplane.plan import compile_plan
from dataplane.replay.result import TaskResult
from dataplane.replay.task import ReplayTask, ReplayTaskRun
from dataplane.retrier.redriver import place_reader
from dataplane.runtime.kafka import lane_producer
from dataplane.runtime.lookups import NoLookupTables, TenantRows, open_lookups
from dataplane.runtime.settings import DataPlaneSettings, settings_from
from dataplane.runtime.telemetry.logs import log_as_json
from dataplane.tables.optional_files import OptionalFiles

MOST_ATTEMPTS: Final = 3


def run_replay_task(tasks: Iterable[ReplayTask]) -> Iterator[TaskResult]:
    """Run the partition's only task and yield its result (the body of a Spark task).

    Spark retries a task whose process crashed, at once and very often; here it ends after MOST_ATTEMPTS, so that the
    driver waits before the next job.
    """
    context = TaskContext.get()
    for task in tasks:
        log_as_json(cell="", lane=f"replay {task.record.replay}")
        if context is not None and context.attemptNumber() >= MOST_ATTEMPTS:
            error = f"the process of the task ended {MOST_ATTEMPTS} times"
            yield TaskResult(task.range.place, task.range.first, error=error, crashed=True)
            continue
        yield run_here(task, settings_from())


def run_here(task: ReplayTask, settings: DataPlaneSettings) -> TaskResult:
    """Run a task with this host's Kafka clients and look-up tables. The plan waits for tables that it lacks."""
    tables = compile_plan(task.spec, task.salt).enrich.tables
    with ExitStack() as stack:
        rows = open_tenant_rows(stack, settings, task.tenant, has_tables=bool(tables))
        if table := rows.unknown(tables):
            return TaskResult(task.range.place, task.range.first, waits=waiting_for(table))
        consumer = place_reader(settings.kafka)
        stack.callback(consumer.close)
        name = f"replay-{task.range.place[1]}"
        producer = None if task.record.rehearsal else lane_producer(settings.kafka, name)
        return ReplayTaskRun(task, consumer, producer, rows).run()


def open_tenant_rows(stack: ExitStack, settings: DataPlaneSettings, tenant: str, *, has_tables: bool) -> TenantRows:
    """Return the tenant's look-up tables on this host, until the stack closes; none if the plan needs none.

    The tables are opened with replication: a host without process lanes has no other process for it.
    """
    if not has_tables:
        return TenantRows(NoLookupTables(), tenant)
    lookups = open_lookups(settings.var, settings.kafka, OptionalFiles())
    stack.callback(lookups.close)
    return TenantRows(stack.enter_context(lookups.pinned()), tenant)


def waiting_for(table: str) -> str:
    """Return the reason, for people, why a plan waits for a look-up table."""
    return f"the look-up table {table!r} has not been loaded yet"
