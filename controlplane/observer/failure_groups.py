"""Store dead letters, held messages, their offsets, suspensions and progress, and the alerts from them.

Called in the transaction that moves the offsets, so each record counts once.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar

from django.db.models import Count
from django.db.models.functions import TruncHour

from controlplane.observer.attempts import at_us
from controlplane.observer.ledger_entries import FailureKey, LedgerEntries, cause_of_suspension, who
from controlplane.observer.merge import clean
from controlplane.observer.rows import ROWS
from dataplane.tables.signals import DestinationSignal
from mgmt.alerts.common_fields import Fields
from mgmt.alerts.failure_sample import sample_of
from mgmt.alerts.services.alerts import FailureGroup, note_failures
from mgmt.deliveries.services.destinations import suspend_destination
from mgmt.deliveries.services.offset_sets import add_places
from mgmt.deliveries.services.redrives import note_progress
from mgmt.models import DeadLetter, Destination, HeldMessage, LaneSignal, ListedMessage
from mgmt.pipes.services.pipes import hold_pipe
from mgmt.replays.services.progress import note_replay_progress
from mgmt.shadows.services.progress import note_shadow_progress

LISTED_AN_HOUR: Final = 1_000  # for each value of ListedMessage.HEAP; the others are only in OffsetSet
Heap = tuple[str, ...]
_L = TypeVar("_L", bound=ListedMessage)


def save_ends(ends: LedgerEntries, now: datetime) -> None:
    """Store all entries of one batch; call it in the transaction that moves the offsets."""
    add_places(ends.places)
    DeadLetter.objects.bulk_create(_within_limit(ends.letters), ignore_conflicts=True, batch_size=ROWS)
    HeldMessage.objects.bulk_create(_within_limit(ends.held), ignore_conflicts=True, batch_size=ROWS)
    suspended = [signal for signal in ends.suspensions.values() if _suspend(signal)]
    note_failures(failures=_failures(ends.letters, suspended, ends.examined), now=now)
    _save_views(ends.views.values())
    for progress in ends.progress.values():
        note_progress(progress=progress, now=now)
    for report in ends.replays.values():
        note_replay_progress(progress=report, now=now)
    for found in ends.shadows.values():
        note_shadow_progress(progress=found, now=now)


def _save_views(signals: Iterable[DestinationSignal]) -> None:
    rows = {(row.pipe_id, row.destination, row.writer): row for row in map(_view, signals)}
    LaneSignal.objects.bulk_create(
        rows.values(),
        update_conflicts=True,
        unique_fields=["pipe_id", "destination", "writer"],
        update_fields=["at", "breaker", "until", "reason", "slow"],
        batch_size=ROWS,
    )


def _within_limit(rows: Sequence[_L]) -> list[_L]:
    if not rows:
        return []
    listed = _listed(rows)
    kept = []
    for row in rows:
        key = (tuple(getattr(row, name) for name in row.HEAP), _hour(row.at))
        if listed[key] < LISTED_AN_HOUR:
            listed[key] += 1
            kept.append(row)
    return kept


def _listed(rows: Sequence[ListedMessage]) -> Counter[tuple[Heap, datetime]]:
    """Count the messages listed already, by heap and hour, in the hours of `rows`."""
    model = type(rows[0])
    known = model._default_manager.filter(
        pipe_id__in={row.pipe_id for row in rows},
        at__gte=_hour(min(row.at for row in rows)),
        at__lt=_hour(max(row.at for row in rows)) + timedelta(hours=1),
    )
    counts = known.values_list(*model.HEAP, TruncHour("at")).annotate(n=Count("id")).order_by()
    return Counter({(heap, hour): n for *heap_, hour, n in counts for heap in (tuple(heap_),)})


def _hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def _view(signal: DestinationSignal) -> LaneSignal:
    return LaneSignal(
        pipe_id=clean(signal.pipe, 32),
        destination=clean(signal.destination, 40),
        writer=clean(signal.writer, 80),
        at=at_us(signal.at_us),
        breaker=signal.breaker,
        until=at_us(signal.until_us) if signal.until_us else None,
        reason=clean(signal.reason, 200),
        slow=signal.slow,
    )


def _suspend(signal: DestinationSignal) -> bool:
    """Suspend the destination; without one, hold the pipe. Return True if the row changed."""
    reason = clean(signal.reason or (f"returned {signal.status}" if signal.status else ""), 200)
    cause, of_version = clean(signal.suspended, 40), signal.of_version
    if not signal.destination:
        return hold_pipe(pipe_id=signal.pipe, of_version=of_version, cause=cause, reason=reason)
    return suspend_destination(
        pipe_id=signal.pipe, name=signal.destination, of_version=of_version, cause=cause, reason=reason
    )


def _failures(
    letters: Iterable[DeadLetter],
    suspended: Iterable[DestinationSignal],
    examined: Mapping[FailureKey, Sequence[Fields]],
) -> list[FailureGroup]:
    groups: dict[FailureKey, list[DeadLetter]] = {}
    for letter in letters:
        groups.setdefault(who(letter), []).append(letter)
    stops = {_stop_key(one): one for one in suspended}
    largest = {key[:4]: key for key in sorted(groups, key=lambda key: len(groups[key]))}
    stopped = {largest[stop] for stop in stops if stop in largest}
    rows = _destinations({*groups, *stops})
    found = [
        _failure(key, group, rows.get(key[:2]), key in stopped, examined.get(key, ())) for key, group in groups.items()
    ]
    found += [_stop(key, signal, rows.get(key[:2])) for key, signal in stops.items() if key not in largest]
    return found


def _stop_key(signal: DestinationSignal) -> tuple[str, str, str, int]:
    """Return the key of the alert about a suspension, without the fingerprint, which the signal does not have."""
    return (clean(signal.pipe, 32), clean(signal.destination, 40), cause_of_suspension(signal), signal.status)


def _destinations(keys: Iterable[tuple[str | int, ...]]) -> Mapping[tuple[str, ...], Destination]:
    rows = Destination.objects.filter(pipe_id__in={key[0] for key in keys})
    return {(row.pipe_id, row.name): row for row in rows}


def _failure(
    key: FailureKey,
    letters: list[DeadLetter],
    row: Destination | None,
    suspended: bool,
    examined: Sequence[Fields],
) -> FailureGroup:
    newest = max(letters, key=lambda letter: letter.at)
    sample = sample_of(newest, row)
    return FailureGroup(
        key.pipe_id, key.destination, key.cause, len(letters), newest.at, sample, suspended, key.status,
        key.fingerprint, tuple(examined),
    )  # fmt: skip


def _stop(key: tuple[str, str, str, int], signal: DestinationSignal, row: Destination | None) -> FailureGroup:
    pipe_id, destination, cause, status = key
    letter = DeadLetter(destination=destination, cause=cause, detail=clean(signal.reason, 300))
    at = at_us(signal.at_us)
    return FailureGroup(pipe_id, destination, cause, 0, at, sample_of(letter, row), suspended=True, status=status)
