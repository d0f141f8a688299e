"""Progress of a shadow run after a job. Pure."""

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

import msgspec

from dataplane.replay.ranges import OffsetRange
from dataplane.shadow.job import PartComparison, PartRead
from dataplane.shadow.samples import newest
from dataplane.tables.redrives import format_place
from dataplane.tables.shadows import MOST_FIELDS, OTHER_FIELDS, SHADOW_VERSION, ShadowProgress, encode_shadow_progress

PROGRESS_BYTES: Final = 64 * 1024  # a record every few seconds for each run, on a topic that lanes and drivers read
_K = TypeVar("_K", bound=str)


def first_shadow_progress(shadow: str, ranges: list[OffsetRange], at_us: int, error: str = "") -> ShadowProgress:
    """Return the progress of a run whose range has been resolved and that has read nothing."""
    return ShadowProgress(
        SHADOW_VERSION,
        shadow,
        at_us,
        reached={format_place(one.place): one.first for one in ranges},
        ends={format_place(one.place): max(one.first, one.end) for one in ranges},
        error=error,
    )


def without(progress: ShadowProgress, ranges: list[OffsetRange], at_us: int, error: str) -> ShadowProgress:
    """Return the progress after ranges that cannot be compared, with the reason."""
    reached = {**progress.reached, **{format_place(one.place): one.end for one in ranges}}
    return msgspec.structs.replace(progress, at_us=at_us, reached=reached, error=error)


def with_job(
    progress: ShadowProgress,
    ranges: list[OffsetRange],
    reads: Iterable[PartRead],
    comparisons: Iterable[PartComparison],
    at_us: int,
) -> ShadowProgress:
    """Return the progress after a complete job of these ranges."""
    units = {name: dict(kinds) for name, kinds in progress.units.items()}
    fields = {name: dict(paths) for name, paths in progress.fields.items()}
    rejected, samples = dict(progress.rejected), list(progress.samples)
    comparisons = list(comparisons)
    for one in comparisons:
        for name, kinds in one.units.items():
            _add(units.setdefault(name, {}), kinds)
        for name, paths in one.fields.items():
            add_fields(fields.setdefault(name, {}), paths)
        _add(rejected, one.rejected)
    samples += sorted((sample for one in comparisons for sample in one.samples), key=lambda one: one.position)
    return msgspec.structs.replace(
        progress,
        at_us=at_us,
        reached={**progress.reached, **{format_place(one.place): one.end for one in ranges}},
        read=progress.read + sum(one.read for one in reads),
        events=progress.events + sum(one.events for one in comparisons),
        units=units,
        fields=fields,
        rejected=rejected,
        samples=newest(samples),
        cost_events=progress.cost_events + sum(one.cost_events for one in comparisons),
        live_cpu_us=progress.live_cpu_us + sum(one.live_cpu_us for one in comparisons),
        shadow_cpu_us=progress.shadow_cpu_us + sum(one.shadow_cpu_us for one in comparisons),
    )


def add_fields(totals: dict[str, int], more: Mapping[str, int]) -> None:
    """Add the counts of fields of a destination; those beyond MOST_FIELDS are counted as OTHER_FIELDS."""
    for path, count in more.items():
        known = path if path in totals or len(totals) < MOST_FIELDS else OTHER_FIELDS
        totals[known] = totals.get(known, 0) + count


def fitted(progress: ShadowProgress) -> ShadowProgress:
    """Return the progress in at most PROGRESS_BYTES: without its oldest samples, then without names of fields."""
    while progress.samples and len(encode_shadow_progress(progress)) > PROGRESS_BYTES:
        samples = progress.samples
        progress = msgspec.structs.replace(progress, samples=samples[len(samples) // 2 + 1 :])
    if len(encode_shadow_progress(progress)) > PROGRESS_BYTES:
        fields = {name: {OTHER_FIELDS: sum(counts.values())} for name, counts in progress.fields.items()}
        progress = msgspec.structs.replace(progress, fields=fields)
    return progress


def _add(totals: dict[_K, int], more: Mapping[_K, int]) -> None:
    for name, count in more.items():
        totals[name] = totals.get(name, 0) + count
