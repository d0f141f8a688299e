"""Watch pipes for unusual patterns, each block once, in batches of pipes. mgmt.patterns defines what is unusual."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec
import structlog
from django.db import transaction
from msgspec import Struct

from controlplane.observer.fields import FollowedFinding, Open, judge_fields
from controlplane.observer.known_causes import KnownCauses, known_causes
from controlplane.observer.numbers import end_silent_drifts
from controlplane.observer.seal import closing_s
from mgmt.deliveries.queries.blocks import blocks_of, hours_of, with_block
from mgmt.models import Finding, PatternHour, PatternMark, Pipe
from mgmt.patterns.blocks import Known, PatternBlock, block_at, hour_of, place_in_hour, start_of
from mgmt.patterns.judge import PATTERNS, PatternStreak, follow, read
from mgmt.patterns.usual import HOURS_BACK

AT_ONCE: Final = 500  # pipes in a transaction
CATCH_UP: Final = 12  # blocks; older ones are skipped: the present state of cells does not explain them
log = structlog.get_logger(__name__)


class ObservedBlock(Struct, frozen=True):
    """One block of a pipe, and the blocks of the hours that it is compared with."""

    pipe: Pipe
    block: PatternBlock
    known: Known


def watch_patterns(now: datetime, grace_s: int) -> int:
    """Judge every block that has ended and was not judged; return how many new findings were shown.

    Safe to kill at any point: a pipe whose hour row has the block already is skipped, and the mark moves only when all
    pipes have it.
    """
    newest = block_at(now - timedelta(seconds=closing_s(grace_s))) - 1
    mark, _ = PatternMark.objects.get_or_create(defaults={"block": newest - 1})
    shown = 0
    for number in range(max(mark.block, newest - CATCH_UP) + 1, newest + 1):
        shown += _watch_block(number, now)
        PatternMark.objects.filter(block__lt=number).update(block=number)
    return shown


def _watch_block(number: int, now: datetime) -> int:
    """Judge one block of all pipes whose cells reported throughout; end the findings of closed and silent pipes."""
    Finding.objects.filter(pipe__state=Pipe.State.CLOSED, ended_at=None).update(ended_at=now)
    end_silent_drifts(now)
    around = known_causes(start_of(number), start_of(number + 1))
    pipes = list(Pipe.objects.filter(cell__in=around.reporting).exclude(state=Pipe.State.CLOSED).order_by("id"))
    batches = (pipes[first : first + AT_ONCE] for first in range(0, len(pipes), AT_ONCE))
    return sum(_watch_batch(batch, number, around, now) for batch in batches)


@transaction.atomic
def _watch_batch(pipes: Sequence[Pipe], number: int, around: KnownCauses, now: datetime) -> int:
    """Judge one block of a batch of pipes, with at most fourteen queries for any number of pipes and some per alert."""
    ids = [pipe.id for pipe in pipes]
    rows = Finding.objects.filter(pipe__in=ids, ended_at=None)
    open_: Open = {(row.pipe_id, row.kind): row for row in rows}
    seen = list(_seen(pipes, number, {pipe for pipe, _ in open_}))
    _keep(seen, number)
    followed = [found for one in seen for found in _followed(one, number, around, open_)]
    followed += judge_fields({one.pipe.id: one.pipe for one in seen}, number, around, open_, now)
    shown = sum([_write(found, number, now) for found in followed])
    _store(followed)
    return shown


def _seen(pipes: Sequence[Pipe], number: int, watched: set[str]) -> Iterator[ObservedBlock]:
    """Yield the blocks not judged yet of pipes with an open finding, or with any event now or in the compared hours."""
    ids, hour = [pipe.id for pipe in pipes], hour_of(number)
    blocks = blocks_of(ids, number)
    hours = hours_of(ids, [hour, *(hour - back for back in HOURS_BACK)])
    for pipe in pipes:
        block, known = blocks.get(pipe.id, PatternBlock()), hours.get(pipe.id, {})
        judged = hour in known and known[hour][place_in_hour(number)] is not None
        lives = block.volume or pipe.id in watched or any(one and one.volume for of in known.values() for one in of)
        if lives and not judged:
            yield ObservedBlock(pipe, block, known)


def _keep(seen: Sequence[ObservedBlock], number: int) -> None:
    hour, index = hour_of(number), place_in_hour(number)
    PatternHour.objects.bulk_create(
        [
            PatternHour(
                pipe_id=one.pipe.id,
                hour=hour,
                blocks=msgspec.to_builtins(with_block(one.known.get(hour), index, one.block)),
            )
            for one in seen
        ],
        update_conflicts=True,
        unique_fields=["pipe_id", "hour"],
        update_fields=["blocks"],
    )


def _followed(one: ObservedBlock, number: int, around: KnownCauses, open_: Open) -> Iterator[FollowedFinding]:
    """Yield the pipe's findings to be stored."""
    readings = read(one.block, one.known, hour_of(number))
    for pattern in PATTERNS:
        reading, row = readings[pattern.signal.name], open_.get((one.pipe.id, pattern.name))
        before = msgspec.convert(row.watch, PatternStreak) if row else None
        shows = reading.shows(pattern)
        watch = follow(before, number, shows=shows, silenced=around.silenced(one.pipe, pattern))
        if watch or row:
            found = row or Finding(pipe=one.pipe, kind=pattern.name, since=start_of(number))
            yield FollowedFinding(found, watch, reading.words if shows else found.words, msgspec.to_builtins(watch))


def _write(found: FollowedFinding, number: int, now: datetime) -> bool:
    """Update the row from its streak; return True if the finding is shown for the first time."""
    row, watch = found.row, found.watch
    if watch is None:
        return False
    is_first = watch.told and not row.told_at
    if is_first:
        row.told_at = now
        log.info("unusual pattern", pipe=row.pipe_id, kind=row.kind, since=row.since.isoformat(), words=found.words)
    row.ended_at = start_of(number + 1) if watch.over else None
    row.words, row.silenced, row.watch = found.words[:200], watch.silenced[:200], found.left
    return is_first


def _store(followed: Sequence[FollowedFinding]) -> None:
    """Store and delete findings, with at most three statements."""
    kept = [found.row for found in followed if found.watch]
    Finding.objects.filter(pk__in=[found.row.pk for found in followed if not found.watch]).delete()
    fields = ["since", "words", "silenced", "told_at", "ended_at", "watch"]
    Finding.objects.bulk_update([row for row in kept if row.pk], fields)
    Finding.objects.bulk_create([row for row in kept if not row.pk])
