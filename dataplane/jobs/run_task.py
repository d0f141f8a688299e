"""Common part of the Spark tasks of replays and shadow runs: look-up tables of the host, and the end after crashes."""

from contextlib import ExitStack
from typing import Final

from pyspark import TaskContext

from dataplane.jobs.kept_context import close_kept
from dataplane.runtime.lookups import NoLookupTables, TenantRows, open_lookups
from dataplane.runtime.settings import DataPlaneSettings
from dataplane.tables.optional_files import OptionalFiles

MOST_ATTEMPTS: Final = 3
CRASHED: Final = f"the process of the task ended {MOST_ATTEMPTS} times"


def has_crashed() -> bool:
    """Return True if the process of this task has ended MOST_ATTEMPTS times.

    Spark retries such a task at once and very often; here it then ends, so that the driver waits before the next job.
    """
    context = TaskContext.get()
    return context is not None and context.attemptNumber() >= MOST_ATTEMPTS


def open_tenant_rows(stack: ExitStack, settings: DataPlaneSettings, tenant: str, *, has_tables: bool) -> TenantRows:
    """Return the tenant's look-up tables on this host, until the stack closes; none if the plan needs none.

    The tables are opened with replication: a host without process lanes has no other process for it.
    """
    if not has_tables:
        return TenantRows(NoLookupTables(), tenant)
    close_kept()
    lookups = open_lookups(settings.var, settings.kafka, OptionalFiles())
    stack.callback(lookups.close)
    return TenantRows(stack.enter_context(lookups.pinned()), tenant)


def waiting_for(table: str) -> str:
    """Return the reason, for people, why a plan waits for a look-up table."""
    return f"the look-up table {table!r} has not been loaded yet"
