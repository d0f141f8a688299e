"""Slowest messages of a range, from their recorded attempts: every failed one, and a sample of the successful ones.

The ledger keeps the time in a node as a distribution, not message by message. What it has of single messages is exact:
the id, which contains the time of acceptance, and the times of recorded attempts.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from dataplane.ledger.bins import Bins, BucketAccount
from dataplane.ledger.breakdown import Slice
from dataplane.ledger.units import format_position
from mgmt.ledger.queries.bucket_range import BucketRange, start_of
from mgmt.ledger.queries.ledger import accounts
from mgmt.ledger.queries.timing import SLICE_NAMES
from mgmt.messages.queries.message_search import accepted_at
from mgmt.models import DeliveryAttempt

MOST_READ: Final = 5_000  # newest attempts of the range
MOST_LISTED: Final = 20
CLOCK_AHEAD: Final = timedelta(hours=1)  # an event's minute may be later than its first attempt, by the source's clock


class Measure(StrEnum):
    """Duration by which messages are sorted.

    WHOLE:    from the acceptance to the end of the latest recorded attempt
    REQUESTS: sum of the durations of the recorded attempts
    BETWEEN:  time between the recorded attempts
    """

    WHOLE = "whole"
    REQUESTS = "requests"
    BETWEEN = "between"


class RecordedAttempt(NamedTuple):
    """Recorded attempt to deliver a message."""

    position: int
    destination: str
    message_id: str
    bucket: int
    at: datetime
    outcome: str
    took: timedelta


@dataclass(frozen=True)
class SlowMessage:
    """Message at one destination, with its duration by the measure. `bin` is its outcome now, "" if it is unknown."""

    position: str
    child: int
    message_id: str
    destination: str
    bucket: int
    accepted_at: datetime | None
    attempts: int
    took_us: int
    bin: str


@dataclass(frozen=True)
class SlowestMessages:
    """Slowest messages of a range. `is_cut`: it has more recorded attempts than were read."""

    measure: Measure
    messages: Sequence[SlowMessage]
    is_cut: bool


def measure_for(stage: str) -> Measure:
    """Return the measure that shows the slowest messages of a stage of the breakdown."""
    known = {SLICE_NAMES[Slice.TRANSMIT]: Measure.REQUESTS, SLICE_NAMES[Slice.RETRY]: Measure.BETWEEN}
    return known.get(stage, Measure.WHOLE)


def slowest_messages(*, pipe_id: str, span: BucketRange, measure: Measure) -> SlowestMessages:
    """Return the slowest messages of a range with their outcome now."""
    rows = DeliveryAttempt.objects.filter(
        pipe_id=pipe_id, bucket__range=(span.first, span.last), at__gte=start_of(span.first) - CLOCK_AHEAD
    )
    columns = ("position", "destination", "message_id", "bucket", "at", "outcome", "timing_us")
    found = list(rows.order_by("-at").values_list(*columns)[: MOST_READ + 1])
    attempts = [
        RecordedAttempt(position, destination, message_id, bucket, at, outcome, _total(timing_us))
        for position, destination, message_id, bucket, at, outcome, timing_us in found[:MOST_READ]
    ]
    slow = slowest_of(attempts, measure, MOST_LISTED)
    now = accounts(pipe_id, {one[0].bucket for _, one in slow})
    messages = [_message(took, own, now[own[0].bucket]) for took, own in slow]
    return SlowestMessages(measure, messages, is_cut=len(found) > MOST_READ)


def slowest_of(
    attempts: Iterable[RecordedAttempt], measure: Measure, most: int
) -> list[tuple[timedelta, list[RecordedAttempt]]]:
    """Return the attempts of the slowest messages in order of time, with the duration by the measure. Pure."""
    by_message: defaultdict[tuple[str, str], list[RecordedAttempt]] = defaultdict(list)
    for one in attempts:
        by_message[one.message_id, one.destination].append(one)
    found = []
    for own in by_message.values():
        own.sort(key=lambda one: one.at)
        took = _took(own, measure)
        if took is not None and took > timedelta(0):
            found.append((took, own))
    return sorted(found, key=lambda pair: pair[0], reverse=True)[:most]


def _total(timing_us: Mapping[str, int]) -> timedelta:
    return timedelta(microseconds=timing_us.get("total", 0))


def _took(own: Sequence[RecordedAttempt], measure: Measure) -> timedelta | None:
    if measure == Measure.REQUESTS:
        return sum((one.took for one in own), timedelta(0))
    if measure == Measure.BETWEEN:
        return own[-1].at - own[0].at - sum((one.took for one in own[:-1]), timedelta(0))
    accepted = accepted_at(own[0].message_id)
    return own[-1].at + own[-1].took - accepted if accepted else None


def _message(took: timedelta, own: Sequence[RecordedAttempt], account: BucketAccount) -> SlowMessage:
    last = own[-1]
    suffix = last.message_id.partition(".")[2]
    child = int(suffix) if suffix.isdecimal() else 0
    return SlowMessage(
        position=format_position(last.position),
        child=child,
        message_id=last.message_id,
        destination=last.destination,
        bucket=last.bucket,
        accepted_at=accepted_at(last.message_id),
        attempts=len(own),
        took_us=took // timedelta(microseconds=1),
        bin=_bin_of(account.destinations, last, child),
    )


def _bin_of(destinations: Mapping[str, Bins], one: RecordedAttempt, child: int) -> str:
    bins = destinations.get(one.destination, {})
    return next((str(name) for name, units in bins.items() if one.position in units.positions(child)), "")
