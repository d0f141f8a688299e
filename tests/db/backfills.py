"""Backfills that wait for their replay, requested by a live revision with new destinations."""

from datetime import datetime, timedelta
from typing import Final

from django.db import connection
from django.utils import timezone

from mgmt.models import Backfill, Pipe, PipeRevision
from mgmt.replays.services.backfills import SETTLED
from mgmt.services import adopt_live_spec, publish_revision
from tests.db.replays import publish
from tests.support.patience import Patience

LIVE_AT: Final = timezone.now()
NOW: Final = LIVE_AT + SETTLED
_WAITING: Final = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


def new_destinations(pipe: Pipe, *names: str, created: datetime = LIVE_AT - timedelta(days=30)) -> list[Backfill]:
    """Make a revision with these new destinations live, each from the earliest event, and return their backfills.

    created: time of the pipe's creation
    """
    Pipe.objects.filter(id=pipe.id).update(created_at=created)
    publish(pipe)
    newest = pipe.revisions.latest("number")
    spec = newest.spec
    spec["destinations"] |= {name: {"type": "topic", "from": "earliest"} for name in names}
    author = pipe.tenant.memberships.get(role="owner").user
    row = publish_revision(pipe=pipe, spec=spec, based_on=newest.number, author=author)
    PipeRevision.objects.filter(id=row.id).update(published_offset=1, state=PipeRevision.State.RAMPING)
    assert adopt_live_spec(revision=row, now=LIVE_AT)
    return [Backfill.objects.get(pipe=pipe, destination=name, revision=row.number) for name in names]


def wait_until_blocked() -> None:
    """Wait until another connection waits for a lock, at most 20 s."""
    limit = Patience(20)
    while not limit.is_over:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_clear_snapshot()")  # a transaction would see the same activity again
            cursor.execute(_WAITING)
            if cursor.fetchone()[0]:
                return
    raise AssertionError("no connection waits for a lock")
