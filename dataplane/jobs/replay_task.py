"""Body of a replay's Spark task: it opens Kafka clients and the host's look-up tables, and runs the task with them."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Final

from pyspark import TaskContext

from dataplane.jobs.replay_worker import ReplayWorker
from dataplane.replay.result import TaskResult
from dataplane.replay.task import ReplayTask, ReplayTaskRun
from dataplane.runtime.lookups import NoLookupTables, TenantRows, open_lookups
from dataplane.runtime.settings import DataPlaneSettings, settings_from
from dataplane.runtime.telemetry.logs import log_as_json
from dataplane.tables.optional_files import OptionalFiles

MOST_ATTEMPTS: Final = 3
_WORKER: Final = ReplayWorker()  # of this process, which runs one task at a time


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
        yield run_here(task, settings_from(), _WORKER)


def run_here(task: ReplayTask, settings: DataPlaneSettings, worker: ReplayWorker) -> TaskResult:
    """Run a task with this host's Kafka clients and look-up tables. The plan waits for tables that it lacks."""
    plan = worker.plan(task)
    with ExitStack() as stack:
        rows = open_tenant_rows(stack, settings, task.tenant, has_tables=bool(plan.enrich.tables))
        if table := rows.unknown(plan.enrich.tables):
            return TaskResult(task.range.place, task.range.first, waits=waiting_for(table))
        is_clean = False
        try:
            clients = worker.lend(settings.kafka, produces=not task.record.rehearsal)
            producer = None if task.record.rehearsal else clients.producer
            result = ReplayTaskRun(task, plan, clients.consumer, producer, rows).run()
            is_clean = not result.error
        finally:
            worker.give_back(is_clean=is_clean)
        return result


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
