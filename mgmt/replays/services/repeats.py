"""Service that repeats the failed events of a replay."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from pyroaring import BitMap64

from dataplane.ledger.bins import OVERWRITTEN, Bin, Bins
from dataplane.ledger.units import place_of
from mgmt.errors import NothingToReplayError, ReplayInProgressError
from mgmt.messages.queries.records import RecordUnavailableError, read_within
from mgmt.models import Replay, Topic, User
from mgmt.replays.models import UNDONE
from mgmt.replays.queries import account_of_replay
from mgmt.replays.services.replays import MOST_IDS, ReplayRequest, start_replay

READ_S: Final = 10.0
ReadIds = Callable[[Replay, BitMap64], list[str]]


def ids_at(replay: Replay, positions: Iterable[int]) -> list[str]:
    """Return the message ids of the events at these positions of the ingest topics, from the log.

    Events past the topic's retention are left out. Raises RecordUnavailableError if they are not read within READ_S.
    """
    by_topic: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for position in positions:
        place = place_of(position)
        by_topic[place.generation][place.partition].append(place.offset)
    topics = Topic.objects.filter(cell_id=replay.cell_id, purpose="ingest", generation__in=by_topic)
    found: list[str] = []
    for topic in topics.order_by("generation"):
        records, late = read_within(
            topic.name, by_topic[topic.generation], pipes=(replay.pipe_id,), most_bytes=0, wait_s=READ_S
        )
        if late:
            raise RecordUnavailableError("the log was not read in time")
        found += [record.meta.id for record in records]
    return found


def repeat_failed(*, replay: Replay, by: User | None, now: datetime, read_ids: ReadIds = ids_at) -> Replay:
    """Start a replay of the events whose units were dead, cancelled or lost in an ended one.

    Units count as lost only once the result of the ended one is final.
    It has the range, revision and rate of the first one, and those of its destinations at which a unit failed: all if
    an event failed before one was chosen. `read_ids` returns the message ids of positions.
    Raises ReplayInProgressError, NothingToReplayError, and what `start_replay` raises.
    """
    if replay.is_under_way:
        raise ReplayInProgressError(f"Replay {replay.id} is {replay.state}. Wait until it has ended, or abort it.")
    positions, destinations = _failed(replay)
    if not positions:
        raise NothingToReplayError(_why_nothing(replay))
    if len(positions) > MOST_IDS:
        raise NothingToReplayError(
            f"{len(positions)} events failed, and at most {MOST_IDS} can be repeated by their ids. Start a replay with "
            "the same range, and a condition in `where` or `keys`, instead."
        )
    try:
        ids = read_ids(replay, positions)
    except RecordUnavailableError as exc:
        raise NothingToReplayError(f"The failed events cannot be read now: {exc.with_advice('Try again.')}") from exc
    if not ids:
        raise NothingToReplayError("The failed events are no longer in the log: their retention time is over.")
    request = ReplayRequest(
        since=replay.since,
        until=replay.until,
        revision=replay.revision,
        destinations=destinations,
        ids=ids,
        revisions=replay.revisions,
        rate_per_s=replay.rate_per_s,
    )
    return start_replay(pipe=replay.pipe, request=request, by=by, now=now, repeats=replay)


def _failed(replay: Replay) -> tuple[BitMap64, list[str]]:
    """Return the positions of the failed events, and the destinations to repeat."""
    account = account_of_replay(replay)
    failed = replay.undone_bins
    by_destination = {name: _positions(bins, failed) for name, bins in account.destinations.items()}
    upstream = _positions(account.upstream, failed)
    names = [name for name in replay.destinations if upstream or by_destination.get(name)]
    return upstream.union(*by_destination.values()), names


def _positions(bins: Bins, failed: Iterable[Bin]) -> BitMap64:
    found = BitMap64()
    for name in failed:
        for child, positions in bins[name].items():
            if child != OVERWRITTEN:  # the log has another event there now
                found |= positions
    return found


def _why_nothing(replay: Replay) -> str:
    bins = (replay.result or {}).get("bins", {})
    if any(counts.get(name) for counts in bins.values() for name in UNDONE):
        return "The ledger no longer lists the failed events. Start a replay with the same range instead."
    return "No event of this replay is dead, cancelled or lost."
