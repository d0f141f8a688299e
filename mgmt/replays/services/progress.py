"""Services that store the driver's reports of replays, and their final accounts."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import structlog
from django.db import transaction
from django.db.models import F, Q

from dataplane.ledger.bins import OPEN, Bins, BucketAccount
from dataplane.ledger.losses import node_counts
from dataplane.tables.replays import ReplayProgress
from mgmt.models import Replay
from mgmt.replays.queries import account_of_replay

UNANSWERED_FOR: Final = timedelta(minutes=5)  # after a request to abort; the cell may have no driver
FORGOTTEN_AFTER: Final = timedelta(days=7)  # by then its events have expired; until then it blocks others
FINAL_AFTER: Final = timedelta(hours=24)  # retries may last longer, and the facts are not kept forever
RECHECK: Final = timedelta(minutes=1)
AT_ONCE: Final = 5  # accounts that one run derives
UPSTREAM: Final = ""
# Columns that a report changes: `ids` alone may have 600 KB, and a running replay is reported every two seconds.
_REPORTED: Final = (
    "progress_at", "started_at", "reached", "ends", "read", "asked", "units", "filtered", "failed", "size_bytes",
    "error", "state", "state_since", "finished_at", "version",
)  # fmt: skip
log = structlog.get_logger(__name__)


@transaction.atomic
def note_replay_progress(*, progress: ReplayProgress, now: datetime) -> None:
    """Store the driver's report. Safe to repeat, also after the end: a replay that has ended does not change."""
    rows = Replay.objects.select_for_update().defer("where", "keys", "ids", "result")
    row = rows.filter(id=progress.replay, state__in=Replay.UNDER_WAY).first()
    if row is None:
        return
    row.progress_at = datetime.fromtimestamp(progress.at_us / 1_000_000, UTC)
    if progress.ends:  # until then the driver waits, for example for the plan
        row.started_at = row.started_at or row.progress_at
    row.reached, row.ends = progress.reached, progress.ends
    row.read, row.asked, row.units = progress.read, progress.asked, progress.units
    row.filtered, row.failed, row.size_bytes = progress.filtered, progress.failed, progress.size_bytes
    row.error = progress.error.replace("\x00", "")[:300]
    if progress.done:
        _finish(row, _end_of(row), now)
    row.save(update_fields=_REPORTED)


def end_unanswered(*, now: datetime) -> int:
    """End the replays whose abort no driver has confirmed for some minutes. Returns their number."""
    rows = Replay.objects.filter(state=Replay.State.ABORTING, state_since__lt=now - UNANSWERED_FOR)
    return rows.update(state=Replay.State.ABORTED, state_since=now, finished_at=now, version=F("version") + 1)


def abort_forgotten(*, now: datetime) -> int:
    """Abort the replays that were started long ago, also paused ones. Returns their number."""
    rows = Replay.objects.filter(
        state__in=(Replay.State.RUNNING, Replay.State.PAUSED), created_at__lt=now - FORGOTTEN_AFTER
    )
    return rows.update(state=Replay.State.ABORTING, state_since=now, version=F("version") + 1)


def store_results(*, now: datetime) -> int:
    """Store the accounts of ended replays that are whole, with nothing queued or retried, or that ended a day ago.

    Safe to run twice: an account is final or is checked again after a minute. Returns the number stored.
    """
    due = Q(checked_at=None) | Q(checked_at__lt=now - RECHECK)
    rows = Replay.objects.filter(due, result_at=None, finished_at__isnull=False)
    stored = 0
    for row in rows.order_by(F("checked_at").asc(nulls_first=True))[:AT_ONCE]:
        account = None if row.rehearsal else account_of_replay(row)
        is_final = account is None or (_is_whole(row, account) and not any(account.count(name) for name in OPEN))
        if is_final or (row.finished_at is not None and row.finished_at < now - FINAL_AFTER):
            result = _result(row, account)
            stored += Replay.objects.filter(id=row.id, result_at=None).update(result=result, result_at=now)
            log.info("replay complete", pipe=row.pipe_id, replay=row.id, bins=result["bins"])
        else:
            Replay.objects.filter(id=row.id).update(checked_at=now)
    return stored


def _end_of(row: Replay) -> str:
    """Return the state of a replay that has ended. One that has read all of its range is done, whatever it notes."""
    if row.ends and not row.unread:
        return Replay.State.DONE
    if row.state == Replay.State.ABORTING:
        return Replay.State.ABORTED
    return Replay.State.FAILED if row.error else Replay.State.DONE


def _finish(row: Replay, state: str, now: datetime) -> None:
    row.state, row.state_since, row.finished_at = state, now, now
    row.version += 1  # published once more, as ended
    log.info("replay ended", pipe=row.pipe_id, replay=row.id, state=state, asked=row.asked, units=row.units)


def _is_whole(row: Replay, account: BucketAccount) -> bool:
    """Return True if the ledger has the facts of all units that the driver reported, which it reads separately."""
    known = {name: sum(map(len, bins.values())) for name, bins in account.destinations.items()}
    has_units = all(known.get(name, 0) >= count for name, count in row.units.items())
    return has_units and len(account.acked) >= row.asked


def _result(row: Replay, account: BucketAccount | None) -> dict[str, Any]:
    if account is None:  # a rehearsal sent nothing
        return {"asked": row.asked, "bins": {}, "nodes": []}
    parts = {UPSTREAM: account.upstream, **account.destinations}
    counts = {name: _counts(bins) for name, bins in parts.items()}
    return {
        "asked": len(account.acked),
        "bins": {name: its for name, its in counts.items() if its},
        "nodes": node_counts(account),
    }


def _counts(bins: Bins) -> dict[str, int]:
    return {str(name): len(units) for name, units in bins.items() if len(units)}
