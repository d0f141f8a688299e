"""Health of destinations: waiting messages from the ledger, recent attempts, and the rows of the last check."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from django.db.models import Q, Sum

from dataplane.ledger.bins import Bin
from dataplane.ledger.facts import Fact
from dataplane.names import transform_node, transmit_node
from mgmt.deliveries.queries.breakers import SIGNAL_MAX_AGE
from mgmt.ledger.queries.ledger import MinuteKey, accounts_of
from mgmt.models import AttemptCount, Destination, DestinationHealth, FactRow, LaneSignal

MOST_MINUTES: Final = 60  # minutes whose messages are counted exactly; of later ones by the sizes of their sets
_TRANSFORM, _TRANSMIT = transform_node(""), transmit_node("")
# Change of the number of messages that wait at a destination, by node and fact.
_CHANGES: Final[Mapping[tuple[str, str], int]] = {
    (_TRANSFORM, Fact.SENT): 1,
    (_TRANSMIT, Fact.DELIVERED): -1,
    (_TRANSMIT, Fact.CANCELLED): -1,
    (_TRANSMIT, Fact.DEAD): -1,
    (_TRANSMIT, Fact.REDRIVEN): 1,
}
_FACTS: Final = tuple({fact for _, fact in _CHANGES})
PipeAndName = tuple[str, str]


class AttemptSums(NamedTuple):
    """Attempts of one destination within a window; failed ones are retried."""

    delivered: int = 0
    failed: int = 0


class Backlog(NamedTuple):
    """Messages that wait for transmit or for a retry; `minutes` has the oldest (bucket, messages)."""

    waiting: int = 0
    minutes: Sequence[tuple[int, int]] = ()


def attempts_since(minute: int) -> dict[PipeAndName, AttemptSums]:
    """Return the attempts of each destination since the beginning of a minute."""
    rows = AttemptCount.objects.filter(minute__gte=minute).values_list("pipe_id", "destination")
    sums = rows.annotate(Sum("delivered"), Sum("failed")).order_by()
    return {(pipe_id, name): AttemptSums(delivered, failed) for pipe_id, name, delivered, failed in sums}


def open_breakers(now: datetime) -> set[PipeAndName]:
    """Return the destinations to which a lane has stopped sending."""
    rows = LaneSignal.objects.filter(at__gte=now - SIGNAL_MAX_AGE, breaker__in=("open", "half-open"))
    return set(rows.exclude(destination="").values_list("pipe_id", "destination"))


def destinations_behind(first: int, last: int) -> set[PipeAndName]:
    """Return the destinations that may have undelivered messages in the buckets `first` to `last`, of all pipes."""
    at_destination = Q(node__startswith=_TRANSFORM) | Q(node__startswith=_TRANSMIT)
    rows = FactRow.objects.filter(FactRow.OF_PIPES, at_destination, bucket__range=(first, last), fact__in=_FACTS)
    sums = rows.values_list("pipe_id", "bucket", "node", "fact").annotate(Sum("count")).order_by()
    counts: defaultdict[tuple[str, int, str], int] = defaultdict(int)
    for pipe_id, bucket, node, fact, count in sums.iterator():
        kind, colon, name = node.partition(":")
        counts[pipe_id, bucket, name] += _CHANGES.get((kind + colon, fact), 0) * count
    return {(pipe_id, name) for (pipe_id, _, name), count in counts.items() if count > 0}


def backlog_of(*, pipe_id: str, destination: str, since: int) -> Backlog:
    """Return the messages of buckets from `since` that wait at a destination; held ones do not count."""
    found: list[tuple[int, int]] = []
    suspects = _suspects(pipe_id, destination, since)
    buckets = sorted(suspects)
    while buckets and len(found) < MOST_MINUTES:
        chunk, buckets = buckets[:MOST_MINUTES], buckets[MOST_MINUTES:]
        accounts = accounts_of(MinuteKey(pipe_id, bucket) for bucket in chunk)
        for bucket in chunk:
            bins = accounts[MinuteKey(pipe_id, bucket)].destinations.get(destination)
            if bins and (count := len(bins[Bin.RETRYING]) + len(bins[Bin.QUEUED])):
                found.append((bucket, count))
    return Backlog(sum(count for _, count in found) + sum(suspects[bucket] for bucket in buckets), found[:MOST_MINUTES])


def health_rows(pipe_ids: Iterable[str]) -> dict[str, list[DestinationHealth]]:
    """Return the health of the destinations of each pipe that had failures or waiting messages."""
    rows = DestinationHealth.objects.filter(destination__pipe__id__any_of=pipe_ids).select_related("destination")
    found: defaultdict[str, list[DestinationHealth]] = defaultdict(list)
    for row in rows.order_by("destination__name"):
        found[row.destination.pipe_id].append(row)
    return found


def oldest_waiting(rows: Iterable[DestinationHealth]) -> datetime | None:
    """Return the minute of the oldest message that waits at any of the destinations; None if none waits."""
    return min((row.oldest_at for row in rows if row.oldest_at), default=None)


def is_unhealthy(destination: Destination) -> bool:
    """Return True if the destination is suspended, fails or is behind: new settings must reach all keys at once."""
    if destination.state == Destination.State.SUSPENDED:
        return True
    unhealthy = Q(failing_since__isnull=False) | Q(delayed_since__isnull=False)
    return DestinationHealth.objects.filter(unhealthy, destination=destination).exists()


def _suspects(pipe_id: str, destination: str, since: int) -> dict[int, int]:
    """Return by bucket how many messages have left for the destination and are not settled, by the sets' sizes."""
    nodes = (transform_node(destination), transmit_node(destination))
    rows = FactRow.objects.filter(pipe_id=pipe_id, bucket__gte=since, node__in=nodes, fact__in=_FACTS)
    counts: defaultdict[int, int] = defaultdict(int)
    for bucket, node, fact, count in rows.values_list("bucket", "node", "fact").annotate(Sum("count")).order_by():
        counts[bucket] += _CHANGES.get((node.removesuffix(destination), fact), 0) * count
    return {bucket: count for bucket, count in counts.items() if count > 0}
