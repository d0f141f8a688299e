"""Replays of a pipe, and their accounts in the ledger: those of its buckets under the replay's id, as one."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Q, QuerySet

from dataplane.ledger.bins import Bin, BucketAccount, BucketFacts, derive, united_facts
from dataplane.ledger.replay_buckets import replay_buckets
from mgmt.ledger.queries.bucket_range import BucketRange
from mgmt.ledger.queries.ledger import MinuteKey, books_of
from mgmt.ledger.queries.losses import MOST_LOST, MinuteLosses, losses_of
from mgmt.ledger.queries.minutes import DestinationLoss, MinuteLoss, line_of
from mgmt.ledger.queries.timing import Timing, timing
from mgmt.messages.units import UnitLine, units_of
from mgmt.models import Backfill, Pipe, Replay

ENDED_SHOWN_FOR: Final = timedelta(days=7)


def replays_of(pipe: Pipe) -> QuerySet[Replay]:
    """Return a pipe's replays, newest first."""
    return Replay.objects.filter(pipe=pipe).select_related("by", "backfill").order_by("-id")


def backfills_of(pipe: Pipe) -> QuerySet[Backfill]:
    """Return a pipe's backfills with their replays, newest first."""
    return Backfill.objects.filter(pipe=pipe).select_related("replay").order_by("-id")


def backfills_without_replay(pipe: Pipe, now: datetime) -> QuerySet[Backfill]:
    """Return a pipe's backfills that wait for their replay, and those of the last days that ended without one."""
    return backfills_of(pipe).filter(Q(ended_at=None) | Q(ended_at__gte=now - ENDED_SHOWN_FOR), replay=None)


def replay_account(replay: Replay) -> MinuteLoss:
    """Return the account of a replay by destination and bin: the stored result, or else as it is now.

    `accepted` counts the events asked for, `sealed_at` is the time of the result; until then no loss is final. Units
    that ended before a destination was chosen have the destination "".
    """
    return accounts_of_replays([replay])[replay.id]


def accounts_of_replays(replays: Iterable[Replay]) -> dict[str, MinuteLoss]:
    """Return the accounts of replays by id, as `replay_account` does, with one read of the ledger for all of them."""
    rows = list(replays)
    found = {row.id: _stored(row, row.result) for row in rows if row.result is not None}
    books = books_of_replays(row for row in rows if row.result is None)
    return found | {row.id: line_of(row.bucket, derive(books[row.id])) for row in rows if row.id in books}


def books_of_replays(replays: Iterable[Replay]) -> dict[str, BucketFacts]:
    """Return the facts of replays by id, with one read of the ledger for all of them.

    The facts of a replay's buckets are united, and a unit waits up to the highest offset of any of them.
    """
    rows = {row.id: row for row in replays}
    books = books_of(MinuteKey(row.id, bucket) for row in rows.values() for bucket in replay_buckets(row.bucket))
    found: dict[str, list[BucketFacts]] = {id_: [] for id_ in rows}
    for minute, its in books.items():
        found[minute.pipe_id].append(its)
    return {id_: united_facts(its) for id_, its in found.items()}


def account_of_replay(replay: Replay) -> BucketAccount:
    """Return the present account of a replay, by unit."""
    return derive(books_of_replays([replay])[replay.id])


def replay_under_way(tenant_id: str) -> Replay | None:
    """Return the tenant's replay that has not ended, with its pipe; a tenant has one at a time."""
    return Replay.objects.filter(tenant_id=tenant_id, state__in=Replay.UNDER_WAY).select_related("pipe").first()


def _stored(replay: Replay, result: Mapping[str, Any]) -> MinuteLoss:
    bins, nodes = result["bins"], result["nodes"]
    total: dict[str, int] = {}
    for counts in bins.values():
        for name, count in counts.items():
            total[name] = total.get(name, 0) + count
    return MinuteLoss(
        bucket=replay.bucket,
        sealed_at=replay.result_at,
        accepted=result["asked"],
        unacked=0,
        bins=total,
        destinations=tuple(DestinationLoss(name, counts) for name, counts in sorted(bins.items())),
        nodes=nodes,
        at_seal=total,
    )


def replay_units(replay: Replay, bin_: Bin, most: int) -> tuple[list[UnitLine], int]:
    """Return the first `most` units of a bin with their positions, and the number of further ones."""
    return units_of(books_of_replays([replay])[replay.id], bin_, most)


def replay_losses(replay: Replay, *, first: int = 0, most: int = MOST_LOST) -> MinuteLosses:
    """Return the loss table of a replay, and its lost units from the number `first` on."""
    return losses_of(books_of_replays([replay])[replay.id], first=first, most=most)


def replay_timing(replay: Replay) -> Timing:
    """Return the lags and durations of a replay by node, and the breakdown of the time of its delivered units.

    The time of a copy is measured from the original's ingest, so the queues include the age of the event.
    """
    buckets = replay_buckets(replay.bucket)
    return timing(pipe_id=replay.id, span=BucketRange("", buckets[0], buckets[-1]))
