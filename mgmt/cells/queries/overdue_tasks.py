"""Overdue periodic tasks.

Read from Postgres alone, because the answer must be available while Redis, beat and every worker are down.
"""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from mgmt.cells.schedule import EVERY_S
from mgmt.models import TaskRun

# Time that a busy machine takes to start a worker; an alarm at each such pause would soon be ignored.
PATIENCE: Final = timedelta(seconds=15)


class OverdueTask(Struct, frozen=True):
    """Overdue task. `since`: time of its last run; None if it never ran."""

    task: str
    since: datetime | None


def overdue_tasks(now: datetime, watched_since: datetime | None = None) -> list[OverdueTask]:
    """Return the tasks that are overdue by two periods, and by PATIENCE; one query.

    watched_since: delays count from this time on, also for tasks that never ran; without it, those are omitted
    """
    last = dict(TaskRun.objects.values_list("task", "at"))
    begun = {task: max(filter(None, (last.get(task), watched_since)), default=now) for task in EVERY_S}
    return [
        OverdueTask(task, last.get(task))
        for task, every_s in EVERY_S.items()
        if now - begun[task] > max(PATIENCE, timedelta(seconds=2 * every_s))
    ]


def is_overdue(task: str, now: datetime) -> bool:
    """Return True if the task ran at least once and is overdue now."""
    return any(silence.task == task for silence in overdue_tasks(now))
