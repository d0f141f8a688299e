"""Samples of fields: stored as they are told, then by block compared with what is usual and kept by the hour."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, cast

import msgspec
from django.db.models import QuerySet
from msgspec import Struct, structs

from controlplane.observer.columns import execute_in_columns
from controlplane.observer.explained import Circumstances
from controlplane.observer.merge import clean
from dataplane.ledger.fields import FieldSample as Told
from mgmt.models import FieldHour, FieldSample, Finding, Pipe
from mgmt.patterns.blocks import MINUTES, hour_of, place_in_hour, start_of
from mgmt.patterns.fields import DRIFTS, Drift, Drifts, Watched, follow_drift, read_fields, watched_of
from mgmt.patterns.judge import Watch
from mgmt.patterns.shares import FieldHour as Hour
from mgmt.patterns.shares import merged, with_sample
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
_told = msgspec.msgpack.Decoder(Told)
_hour = msgspec.msgpack.Decoder(Hour)
_encode = msgspec.msgpack.Encoder().encode
Place = tuple[str, str]  # pipe, source
Open = Mapping[tuple[str, str], Finding]


class Followed(Struct, frozen=True):
    """A finding's row, what it has become (None: forgotten), its words, and what is left to the next block."""

    row: Finding
    watch: Watch | None
    words: str
    left: object


def add_samples(samples: Iterable[Told]) -> None:
    """A row for each; it counts once only within the transaction of its offset."""
    execute_in_columns(
        _ADD,
        [
            (clean(one.pipe, 32), clean(one.source, 40), one.bucket // MINUTES, _encode(one))
            for one in samples
            if one.events
        ],
    )


def judge_fields(pipes: Mapping[str, Pipe], number: int, around: Circumstances, open_: Open) -> Iterator[Followed]:
    """What there is to be stored of the pipes' findings; the block's shares are kept. Three queries."""
    samples = _samples(list(pipes), number)
    hours = _hours(samples, hour_of(number))
    kept: list[tuple[str, str, int, bytes]] = []
    shown: dict[str, dict[str, Drifts]] = defaultdict(dict)
    for (pipe, source), told in samples.items():
        sample, known = merged(told), {hour: _hour.decode(row) for hour, row in hours[pipe, source].items()}
        places = [place for drift in DRIFTS if (row := open_.get((pipe, drift))) for place in row.watch]
        shown[pipe][source] = read_fields(sample, known, hour_of(number), watched_of(source, places))
        hour = with_sample(known.get(hour_of(number)), place_in_hour(number), sample)
        kept.append((pipe, source, hour_of(number), _encode(hour)))
    execute_in_columns(_KEEP, kept)
    for pipe, sources in shown.items():
        for drift in DRIFTS:
            silenced = {} if drift == "skew" else around.schemas.get(pipe, {})  # it says little of how often
            row = open_.get((pipe, drift)) or Finding(pipe=pipes[pipe], kind=drift)
            yield from _followed(row, number, sources, silenced)


def _followed(
    row: Finding, number: int, sources: Mapping[str, Drifts], silenced: Mapping[str, str]
) -> Iterator[Followed]:
    before = msgspec.convert(row.watch, dict[str, Watch])
    drift, known = cast(Drift, row.kind), bool(row.told_at or row.silenced)
    now = follow_drift(drift, before, number, sources, silenced, known=known)
    if now.whole is None and not row.pk:
        return
    if now.whole and not now.whole.over and not row.told_at:
        row.since = start_of(now.whole.since)
    yield Followed(row, _ended_as_it_was(now, row), now.words or row.words, msgspec.to_builtins(now.keys))


def _ended_as_it_was(now: Watched, row: Finding) -> Watch | None:
    """What explained it goes on to stand there."""
    if now.whole and now.whole.over:
        return structs.replace(now.whole, silenced=row.silenced)
    return now.whole


def _samples(pipe_ids: Sequence[str], number: int) -> Mapping[Place, list[Told]]:
    rows = FieldSample.objects.filter(pipe_id__in=pipe_ids, block=number)
    found: dict[Place, list[Told]] = defaultdict(list)
    for pipe, source, sample in rows.values_list("pipe_id", "source", "sample").iterator():
        found[pipe, source].append(_told.decode(sample))
    return found


def _hours(places: Iterable[Place], hour: int) -> Mapping[Place, Mapping[int, bytes]]:
    """The hours that matter, undecoded: those of many pipes at once would take much memory."""
    found: dict[Place, dict[int, bytes]] = defaultdict(dict)
    pipes = {pipe for pipe, _ in places}
    wanted = [hour, *(hour - back for back in HOURS_BACK)]
    rows: QuerySet[FieldHour] = FieldHour.objects.filter(pipe_id__in=pipes, hour__in=wanted)
    for pipe, source, at, shares in rows.values_list("pipe_id", "source", "hour", "shares").iterator():
        found[pipe, source][at] = bytes(shares)
    return found
