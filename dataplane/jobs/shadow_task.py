"""Bodies of a shadow run's Spark tasks: they open Kafka clients and the host's look-up tables, and use them."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial

from pyspark import RDD, SparkContext

from dataplane.jobs.run_task import CRASHED, has_crashed, open_tenant_rows, waiting_for
from dataplane.plan import compile_plan
from dataplane.retrier.redriver import place_reader
from dataplane.runtime.settings import settings_from
from dataplane.runtime.telemetry.logs import log_as_json
from dataplane.shadow.job import JobPart, PartComparison, PartRead, ShadowJob, parts_of
from dataplane.shadow.reading import Passed, read_part
from dataplane.shadow.task import ShadowTask


def shadow_rdd(context: SparkContext, job: ShadowJob, tasks: int) -> RDD[PartRead | PartComparison]:
    """Return a job: `tasks` tasks read both topics, and after a shuffle by position as many compare."""
    read = context.parallelize(parts_of(job, tasks), tasks).mapPartitions(partial(_read, job))
    return read.groupByKey(tasks).mapPartitions(partial(_compare, job))


def _read(job: ShadowJob, parts: Iterable[JobPart]) -> Iterator[tuple[int, Passed]]:
    log_as_json(cell="", lane=f"shadow {job.record.shadow}")
    for part in parts:
        if has_crashed():
            yield -1 - part.number, PartRead(error=CRASHED, crashed=True)
            continue
        consumer = place_reader(settings_from().kafka)
        try:
            yield from read_part(job, part, consumer)
        finally:
            consumer.close()


def _compare(job: ShadowJob, groups: Iterable[tuple[int, Iterable[Passed]]]) -> Iterator[PartRead | PartComparison]:
    """Compare the groups of a task. Results of reading, whose keys are below 0, are passed on."""
    log_as_json(cell="", lane=f"shadow {job.record.shadow}")
    if has_crashed():
        yield PartComparison(error=CRASHED, crashed=True)
        return
    reads: list[PartRead] = []
    draft, live = compile_plan(job.record.spec, job.salt), compile_plan(job.live, job.salt)
    tables = {*draft.enrich.tables, *live.enrich.tables}
    with ExitStack() as stack:
        rows = open_tenant_rows(stack, settings_from(), job.tenant, has_tables=bool(tables))
        if table := rows.unknown(tables):
            yield PartComparison(waits=waiting_for(table))
            return
        yield ShadowTask(job, draft, live, rows).run(_events(groups, reads))
    yield from reads


def _events(
    groups: Iterable[tuple[int, Iterable[Passed]]], reads: list[PartRead]
) -> Iterator[tuple[int, Iterable[Passed]]]:
    for position, records in groups:
        if position < 0:
            reads += [one for one in records if isinstance(one, PartRead)]
        else:
            yield position, records
