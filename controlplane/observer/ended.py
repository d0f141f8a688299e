"""Stores what ended: dead letters, places, suspensions, progress of moves, and the alerts that follow from them.

Called in the transaction that moves the offsets, so each record counts once.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Count
from django.db.models.functions import TruncHour

from controlplane.observer.attempts import at_us
from controlplane.observer.ends import Ends, Who, cause_of_suspension, who
from controlplane.observer.merge import clean
from controlplane.observer.rows import ROWS
from dataplane.tables.signals import Signal
from mgmt.models import DeadLetter, Destination, LaneSignal
from mgmt.services.alerts import Failure, note_failures
from mgmt.services.destinations import suspend_destination
from mgmt.services.moves import note_progress
from mgmt.services.places import add_places
from mgmt.services.samples import sample_of

LETTERS_AN_HOUR: Final = 1_000  # listed for each pipe, destination and cause; the others are in their sets alone


def save_ends(ends: Ends, now: datetime) -> None:
    """Everything of one batch."""
    add_places(ends.places)
    DeadLetter.objects.bulk_create(_within_limit(ends.letters), ignore_conflicts=True, batch_size=ROWS)
    suspended = [signal for signal in ends.suspensions.values() if _suspend(signal)]
    note_failures(failures=_failures(ends.letters, suspended), now=now)
    _save_views(ends.views.values())
    for progress in ends.progress.values():
        note_progress(progress=progress, now=now)


def _save_views(signals: Iterable[Signal]) -> None:
    rows = {(row.pipe_id, row.destination, row.writer): row for row in map(_view, signals)}
    LaneSignal.objects.bulk_create(
        rows.values(),
        update_conflicts=True,
        unique_fields=["pipe_id", "destination", "writer"],
        update_fields=["at", "breaker", "until", "reason", "slow"],
        batch_size=ROWS,
    )


def _within_limit(letters: Iterable[DeadLetter]) -> list[DeadLetter]:
    letters = list(letters)
    if not letters:
        return []
    listed = _listed(letters)
    kept = []
    for letter in letters:
        place = (who(letter), _hour(letter.at))
        if listed[place] < LETTERS_AN_HOUR:
            listed[place] += 1
            kept.append(letter)
    return kept


def _listed(letters: list[DeadLetter]) -> Counter[tuple[Who, datetime]]:
    """How many are listed already, in the hours of these."""
    rows = DeadLetter.objects.filter(
        pipe_id__in={letter.pipe_id for letter in letters},
        at__gte=_hour(min(letter.at for letter in letters)),
        at__lt=_hour(max(letter.at for letter in letters)) + timedelta(hours=1),
    )
    counts = rows.values_list("pipe_id", "destination", "cause", TruncHour("at")).annotate(n=Count("id")).order_by()
    return Counter({(Who(pipe, name, cause), hour): n for pipe, name, cause, hour, n in counts})


def _hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def _view(signal: Signal) -> LaneSignal:
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


def _suspend(signal: Signal) -> bool:
    reason = clean(signal.reason or (f"answered {signal.status}" if signal.status else ""), 200)
    return suspend_destination(
        pipe_id=signal.pipe,
        name=signal.destination,
        of_version=signal.of_version,
        cause=clean(signal.suspended, 40),
        reason=reason,
    )


def _failures(letters: Iterable[DeadLetter], suspended: Iterable[Signal]) -> list[Failure]:
    groups: dict[Who, list[DeadLetter]] = {}
    for letter in letters:
        groups.setdefault(who(letter), []).append(letter)
    stops = {Who(one.pipe, one.destination, cause_of_suspension(one)): one for one in suspended}
    rows = _destinations({*groups, *stops})
    found = [_failure(key, group, rows.get(key[:2]), key in stops) for key, group in groups.items()]
    found += [_stop(key, signal, rows.get(key[:2])) for key, signal in stops.items() if key not in groups]
    return found


def _destinations(keys: Iterable[Who]) -> Mapping[tuple[str, ...], Destination]:
    rows = Destination.objects.filter(pipe_id__in={key.pipe_id for key in keys})
    return {(row.pipe_id, row.name): row for row in rows}


def _failure(key: Who, letters: list[DeadLetter], row: Destination | None, suspended: bool) -> Failure:
    newest = max(letters, key=lambda letter: letter.at)
    return Failure(*key, len(letters), newest.at, sample_of(newest, row), suspended)


def _stop(key: Who, signal: Signal, row: Destination | None) -> Failure:
    letter = DeadLetter(destination=key.destination, cause=key.cause, detail=clean(signal.reason, 300))
    return Failure(*key, 0, at_us(signal.at_us), sample_of(letter, row), suspended=True)
