"""Body of a replay's Spark task: it opens Kafka clients and the host's look-up tables, and runs the task with them."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Final

from dataplane.jobs.low_priority import at_low_priority
from dataplane.jobs.replay_worker import ReplayWorker
from dataplane.jobs.run_task import CRASHED, has_crashed, open_tenant_rows, waiting_for
from dataplane.replay.result import TaskResult
from dataplane.replay.task import ReplayTask, ReplayTaskRun
from dataplane.runtime.settings import DataPlaneSettings, settings_from
from dataplane.runtime.telemetry.logs import log_as_json

_WORKER: Final = ReplayWorker()  # of this process, which runs one task at a time


def run_replay_task(tasks: Iterable[ReplayTask]) -> Iterator[TaskResult]:
    """Run the partition's only task and yield its result (the body of a Spark task)."""
    for task in tasks:
        log_as_json(cell="", lane=f"replay {task.record.replay}")
        if has_crashed():
            yield TaskResult(task.range.place, task.range.first, error=CRASHED, crashed=True)
            continue
        yield at_low_priority(partial(run_here, task, settings_from(), _WORKER))


def run_here(task: ReplayTask, settings: DataPlaneSettings, worker: ReplayWorker) -> TaskResult:
    """Run a task with this host's Kafka clients and look-up tables. The plan waits for tables that it lacks."""
    plan = worker.plan(task)
    with ExitStack() as stack:
        rows = open_tenant_rows(stack, settings, task.tenant, has_tables=bool(plan.enrich.tables))
        if table := rows.unknown(plan.enrich.tables):
            return TaskResult(task.range.place, task.range.first, waits=waiting_for(table))
        lease = stack.enter_context(worker.lend(settings.kafka, produces=not task.record.rehearsal))
        producer = None if task.record.rehearsal else lease.context.producer
        result = ReplayTaskRun(task, plan, lease.context.consumer, producer, rows).run()
        if not result.error:
            lease.keep()
        return result
