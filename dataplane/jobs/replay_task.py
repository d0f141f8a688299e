"""Body of a replay's Spark task: it opens Kafka clients and the host's look-up tables, and runs the task with them."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Final

from pyspark import TaskContext

from dataplane.jobs.replay_worker import ReplayWorker
from dataplane.process.lookups import Lookups, NoLookupTables, TenantRows, open_lookups
from dataplane.replay.result import TaskResult
from dataplane.replay.task import ReplayTask, ReplayTaskRun
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
        rows = TenantRows(NoLookupTables(), task.tenant)
        if tables := plan.enrich.tables:
            lookups = _opened(settings)
            stack.callback(lookups.close)
            rows = TenantRows(stack.enter_context(lookups.pinned()), task.tenant)
            if table := rows.unknown(tables):
                waits = f"the look-up table {table!r} has not been loaded yet"
                return TaskResult(task.range.place, task.range.first, waits=waits)
        is_clean = False
        try:
            clients = worker.lend(settings.kafka, produces=not task.record.rehearsal)
            producer = None if task.record.rehearsal else clients.producer
            result = ReplayTaskRun(task, plan, clients.consumer, producer, rows).run()
            is_clean = not result.error
        finally:
            worker.give_back(is_clean=is_clean)
        return result


def _opened(settings: DataPlaneSettings) -> Lookups:
    """Open the host's tables, with replication: a host without process lanes has no other process for it."""
    return open_lookups(settings.var, settings.kafka, OptionalFiles())
