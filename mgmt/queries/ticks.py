"""Which of the tasks that come again and again nobody has done lately.

Read from rows alone: what is asked here must be known while Redis, beat and every worker are gone.
"""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from mgmt.models import Tick
from mgmt.schedule import EVERY_S

# What a busy machine takes to start a worker: an alarm at each pause of it would soon be read by nobody.
PATIENCE: Final = timedelta(seconds=15)


class Silence(Struct, frozen=True):
    """A task that nobody has done since; None if nobody ever has."""

    task: str
    since: datetime | None


def silent(now: datetime, watched_since: datetime | None = None) -> list[Silence]:
    """The tasks that are overdue by two periods, and by PATIENCE: one query.

    watched_since: silence counts from then on, that of tasks never done as well; without it, those are left out
    """
    last = dict(Tick.objects.values_list("task", "at"))
    begun = {task: max(filter(None, (last.get(task), watched_since)), default=now) for task in EVERY_S}
    return [
        Silence(task, last.get(task))
        for task, every_s in EVERY_S.items()
        if now - begun[task] > max(PATIENCE, timedelta(seconds=2 * every_s))
    ]


def is_silent(task: str, now: datetime) -> bool:
    """Whether this one was done once, and is overdue."""
    return any(silence.task == task for silence in silent(now))
