"""Field samples: stored as reported, then compared with the usual shares and numbers by block, and kept by hour."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, cast

import msgspec
from django.db.models import QuerySet
from msgspec import Struct, structs

from controlplane.observer.columns import execute_in_columns
from controlplane.observer.known_causes import KnownCauses
from controlplane.observer.merge import clean
from controlplane.observer.numbers import NumberWatcher
from dataplane.ledger.fields import FieldObservation
from mgmt.models import FieldHour, FieldSample, Finding, Pipe
from mgmt.patterns.blocks import MINUTES, hour_of, place_in_hour, start_of
from mgmt.patterns.fields import DRIFTS, Drift, FieldDrifts, FieldStreak, follow_drift, read_fields, watched_of
from mgmt.patterns.judge import PatternStreak
from mgmt.patterns.shares import FieldShares as Hour
from mgmt.patterns.shares import merged, numbers_of, with_numbers, with_sample
from mgmt.patterns.usual import HOURS_BACK

_ADD: Final = """
INSERT INTO mgmt_fieldsample (pipe_id, source, block, sample)
SELECT * FROM unnest(%s::varchar[], %s::varchar[], %s::int[], %s::bytea[])
"""
_KEEP: Final = """
INSERT INTO mgmt_fieldhour (pipe_id, source, hour, shares)
SELECT * FROM unnest(%s::varchar[], %s::varchar[], %s::int[], %s::bytea[])
ON CONFLICT (pipe_id, source, hour) DO UPDATE SET shares = EXCLUDED.shares
"""
_sample_decoder = msgspec.msgpack.Decoder(FieldObservation)
_hour_decoder = msgspec.msgpack.Decoder(Hour)
_encode = msgspec.msgpack.Encoder().encode
SourceKey = tuple[str, str]  # pipe, source
Open = Mapping[tuple[str, str], Finding]


class FollowedFinding(Struct, frozen=True):
    """Finding after a block.

    watch: its streak; None if it is to be deleted
    left:  state to store for the next block
    """

    row: Finding
    watch: PatternStreak | None
    words: str
    left: object


def add_samples(samples: Iterable[FieldObservation]) -> None:
    """Store a row for each sample; call it in the transaction that moves the offset, so that each counts once."""
    execute_in_columns(
        _ADD,
        [
            (clean(one.pipe, 32), clean(one.source, 40), one.bucket // MINUTES, _encode(one))
            for one in samples
            if one.events
        ],
    )


def judge_fields(
    pipes: Mapping[str, Pipe], number: int, around: KnownCauses, open_: Open, now: datetime
) -> Iterator[FollowedFinding]:
    """Yield the pipes' findings to be stored, and store the block's shares. Six queries, and some for each alert."""
    samples = _samples(list(pipes), number)
    hours = _hours(samples, hour_of(number))
    kept: list[tuple[str, str, int, bytes]] = []
    drifts: dict[str, dict[str, FieldDrifts]] = defaultdict(dict)
    watcher = NumberWatcher(pipes, number)
    for (pipe, source), observations in samples.items():
        sample = merged(observations)
        known = {hour: _hour_decoder.decode(row) for hour, row in hours[pipe, source].items()}
        watched = [field for drift in DRIFTS if (row := open_.get((pipe, drift))) for field in row.watch]
        drifts[pipe][source] = read_fields(sample, known, hour_of(number), watched_of(source, watched))
        numbers = numbers_of(observations)
        hour = with_numbers(with_sample(known.get(hour_of(number)), place_in_hour(number), sample), numbers)
        watcher.watch(pipe, source, numbers, known, is_quiet=around.is_changing(pipes[pipe]))
        kept.append((pipe, source, hour_of(number), _encode(hour)))
    execute_in_columns(_KEEP, kept)
    watcher.store(now)
    for pipe, sources in drifts.items():
        for drift in DRIFTS:
            # A schema says little about how often a field occurs.
            silenced = {} if drift == "skew" else around.schemas.get(pipe, {})
            row = open_.get((pipe, drift)) or Finding(pipe=pipes[pipe], kind=drift)
            yield from _followed(row, number, sources, silenced)


def _followed(
    row: Finding, number: int, sources: Mapping[str, FieldDrifts], silenced: Mapping[str, str]
) -> Iterator[FollowedFinding]:
    before = msgspec.convert(row.watch, dict[str, PatternStreak])
    drift, known = cast(Drift, row.kind), bool(row.told_at or row.silenced)
    now = follow_drift(drift, before, number, sources, silenced, known=known)
    if now.whole is None and not row.pk:
        return
    if now.whole and not now.whole.over and not row.told_at:
        row.since = start_of(now.whole.since)
    yield FollowedFinding(row, _keep_explanation(now, row), now.words or row.words, msgspec.to_builtins(now.keys))


def _keep_explanation(now: FieldStreak, row: Finding) -> PatternStreak | None:
    """Keep the explanation of a finding that has ended."""
    if now.whole and now.whole.over:
        return structs.replace(now.whole, silenced=row.silenced)
    return now.whole


def _samples(pipe_ids: Sequence[str], number: int) -> Mapping[SourceKey, list[FieldObservation]]:
    rows = FieldSample.objects.filter(pipe_id__in=pipe_ids, block=number)
    found: dict[SourceKey, list[FieldObservation]] = defaultdict(list)
    for pipe, source, sample in rows.values_list("pipe_id", "source", "sample").iterator():
        found[pipe, source].append(_sample_decoder.decode(sample))
    return found


def _hours(sources: Iterable[SourceKey], hour: int) -> Mapping[SourceKey, Mapping[int, bytes]]:
    """Return the compared hours, undecoded, because the decoded hours of many pipes take much memory."""
    found: dict[SourceKey, dict[int, bytes]] = defaultdict(dict)
    pipes = {pipe for pipe, _ in sources}
    wanted = [hour, *(hour - back for back in HOURS_BACK)]
    rows: QuerySet[FieldHour] = FieldHour.objects.filter(pipe_id__in=pipes, hour__in=wanted)
    for pipe, source, at, shares in rows.values_list("pipe_id", "source", "hour", "shares").iterator():
        found[pipe, source][at] = bytes(shares)
    return found
